"""Connector configurations: read, compared, planned, changed and taken back."""
