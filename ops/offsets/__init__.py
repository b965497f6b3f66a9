"""Source offsets: look (``observe``, ``dump``), then decide (``assemble``)."""
