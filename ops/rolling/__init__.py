"""Rolling changes of the workers of a Connect cluster: one at a time, with gates between them, and the way back."""
