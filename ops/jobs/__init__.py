"""Bulk work on Spark: functions from DataFrame to DataFrame, and the engine that supplies their
input.
"""
