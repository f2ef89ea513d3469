"""The programs of agents: found on the machine, or installed from where their makers publish them."""
