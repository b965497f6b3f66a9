"""The spine of every change: a plan of steps, the executor that carries it out, and the journal that remembers it."""
