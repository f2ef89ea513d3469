"""Settings by what they are about, where they are many; each group is part of the settings."""
