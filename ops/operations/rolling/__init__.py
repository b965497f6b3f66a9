"""What rolls of workers and of instances of stream applications have in common: how they wait, and what they record."""
