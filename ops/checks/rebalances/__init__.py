"""Rebalances that follow each other, and the workers that cause them."""
