"""How much tenants, projects and actors may have, and what refuses them more."""
