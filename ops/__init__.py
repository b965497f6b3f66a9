"""Everything that is true without a terminal."""
