"""One agent at work: its connection, its dialogue, and the guard that keeps its turns honest."""
