"""Transactions: list, hanging, lag, abort, commit."""
