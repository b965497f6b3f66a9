"""Transactions of a Kafka cluster: listed, shown, looked for where they hang, ended."""
