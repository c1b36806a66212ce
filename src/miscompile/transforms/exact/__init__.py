"""Relations that preserve every bit of a model's results."""
