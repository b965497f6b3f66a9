"""Shared by rolling restarts of workers and of Kafka Streams instances: waiting, and the notes of a
run.
"""
