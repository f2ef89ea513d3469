"""Delivery: the result of a workspace as a patch, a branch, or a pull request. The way in is `service`."""
