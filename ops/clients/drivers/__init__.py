"""How a worker's property is changed and the worker restarted: the operator's own way."""
