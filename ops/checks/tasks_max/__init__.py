"""tasks.max (KIP-1004)."""
