"""One module or package per command: parse, call one function of ``ops``, render."""
