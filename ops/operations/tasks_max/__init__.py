"""Connectors with more tasks than tasks.max (KIP-1004)."""
