"""What is wrong before anything is changed: what was observed, and pure rules over it."""
