"""The task runtime: Connect-style tasks with KIP-618's guarantees, as processes of Spark or of this machine."""
