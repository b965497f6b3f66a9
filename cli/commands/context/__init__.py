"""``connectctl context``."""
