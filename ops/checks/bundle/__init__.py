"""Bundles: the answers that a check was given, in an archive from which it can be repeated."""
