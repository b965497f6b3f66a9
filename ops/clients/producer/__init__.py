"""The transactional producer of ``connectctl.producer``, for programs of anybody's own."""
