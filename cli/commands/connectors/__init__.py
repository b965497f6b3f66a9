"""``connectctl connectors``."""
