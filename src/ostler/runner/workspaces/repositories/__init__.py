"""Remote repositories: which may be used, their bare copies, and their submodules."""
