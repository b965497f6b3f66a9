"""``connectctl runs``."""
