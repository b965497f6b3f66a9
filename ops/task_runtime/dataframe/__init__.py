"""A DataFrame or a stream written exactly once."""
