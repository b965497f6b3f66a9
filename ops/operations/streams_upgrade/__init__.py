"""Upgrade exactly-once Kafka Streams applications from per-partition to group-aware producers
(KIP-447).
"""
