"""Consumers of source connectors' topics."""
