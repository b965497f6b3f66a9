"""``connectctl offsets``."""
