"""Connectors and tasks that fail, again and again or for good."""
