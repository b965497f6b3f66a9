"""Connectors: their health, their target states, and the repair of their fencing."""
