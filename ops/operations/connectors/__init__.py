"""Connectors: their health, their target states, and what cures them."""
