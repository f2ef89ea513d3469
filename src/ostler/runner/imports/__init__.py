"""Conversations that agents' own programs have in the home folder of this machine's user."""
