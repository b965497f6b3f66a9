"""Rounds of zombie fencing."""
