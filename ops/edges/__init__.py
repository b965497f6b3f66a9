"""The only folder that meets the network; its errors end here and become those of ``ops.errors``."""
