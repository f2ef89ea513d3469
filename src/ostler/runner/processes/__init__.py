"""Agent processes under their keepers: started, spooled, woken by bells, and ended with everything below them."""
