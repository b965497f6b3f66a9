"""One task: its transactions, its producer, its offsets."""
