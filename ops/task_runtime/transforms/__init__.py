"""Single message transformations: those of ``org.apache.kafka.connect.transforms``, for records of
sources and sinks.
"""
