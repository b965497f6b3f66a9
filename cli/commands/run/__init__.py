"""``connectctl run``."""
