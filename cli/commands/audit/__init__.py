"""``connectctl audit``."""
