"""What the workers' topics retain of the past."""
