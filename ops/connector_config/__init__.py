"""Configurations of connectors."""
