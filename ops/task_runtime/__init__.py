"""The task runtime: Connect-style tasks with KIP-618's guarantees, on Spark or on this machine."""
