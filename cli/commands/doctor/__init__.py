"""``connectctl doctor``."""
