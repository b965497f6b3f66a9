"""Applications that read and write with exactly-once: from per-partition producers to group-aware ones (KIP-447)."""
