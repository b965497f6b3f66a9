"""Ways to change a worker's property and to restart the worker, as its operator does it."""
