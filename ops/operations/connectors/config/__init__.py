"""Connector configurations: read, compared, planned, changed and restored."""
