"""The server: answers, remembers, decides. It never imports an adapter."""
