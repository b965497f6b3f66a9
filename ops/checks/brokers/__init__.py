"""Brokers: what exactly-once needs of them."""
