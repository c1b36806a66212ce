"""Equality saturation: an e-graph over the term language, and the simplest, most complex or random graph in it."""
