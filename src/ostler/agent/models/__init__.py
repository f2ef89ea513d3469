"""How models are asked: what they can take, the protocols of their providers, and what to do when one fails."""
