"""What really is the matter where Connect says something else, or nothing."""
