"""Committed offsets of the consumer groups of sinks and transforms, in the format of KIP-875:
observe, change, back up, undo.
"""
