"""Sink connectors that do not keep up, and records that they leave out."""
