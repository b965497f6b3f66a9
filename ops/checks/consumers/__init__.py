"""Consumers of what source connectors write."""
