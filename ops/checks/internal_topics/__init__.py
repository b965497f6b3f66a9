"""The workers' internal topics."""
