"""Checks before a change: observations of the cluster, and pure rules over them."""
