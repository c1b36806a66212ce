"""Relations that keep every bit of what a model computes."""
