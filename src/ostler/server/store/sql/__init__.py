"""What the SQL stores share: the reads, and the schema as one list of migrations."""
