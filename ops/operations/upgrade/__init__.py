"""Rolling changes of workers: order, health gates, the way back."""
