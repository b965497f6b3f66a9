"""The command line: parse arguments, call one function of ops, render its result, exit."""
