"""Source offsets: observe, compare, change, back up, undo."""
