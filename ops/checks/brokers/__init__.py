"""Brokers: requirements of exactly-once."""
