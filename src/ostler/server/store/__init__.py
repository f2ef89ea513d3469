"""What a server remembers: `protocol.py` says in which words it is asked, `sqlite/` is how it is done."""
