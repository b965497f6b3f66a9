"""Spark: sessions and executors."""
