"""What stands in front of every handler: who may call, how much, and how often."""
