"""A run: job file, generation of tasks, rounds on Spark, statuses."""
