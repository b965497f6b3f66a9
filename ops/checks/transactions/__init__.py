"""Transactions of source tasks."""
