"""Topics as Parquet files, exactly once: the sink ``ParquetArchive``, its manifest topic, and the
reader of both.
"""
