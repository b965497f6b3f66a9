"""``connectctl transactions``."""
