"""``connectctl preflight``."""
