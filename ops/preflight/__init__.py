"""What is wrong before anything is changed: facts that were seen, and pure rules over them."""
