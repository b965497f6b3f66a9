"""``connectctl upgrade``."""
