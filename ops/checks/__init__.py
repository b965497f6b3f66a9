"""Checks before any change: observations, and pure rules over them."""
