"""The audit: what batch headers and records prove about exactly-once, as pure rules."""
