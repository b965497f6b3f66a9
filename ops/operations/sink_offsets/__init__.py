"""Committed offsets of sinks' and transforms' consumer groups, in KIP-875's shape: observe, change, back up, undo."""
