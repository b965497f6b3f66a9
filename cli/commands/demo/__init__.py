"""``connectctl demo``."""
