"""The flow of every change: a plan of steps, the executor that runs it, and the journal that
records it.
"""
