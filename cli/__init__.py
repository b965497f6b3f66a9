"""Words in, words out: parse, call one function of ops, render, exit."""
