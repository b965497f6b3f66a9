"""Connectors run in memory by the real task loop, for unit tests: what ``connectctl.testing``
exports.
"""
