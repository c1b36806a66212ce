"""The text form of graphs: readable, diffable, and exact to the bit. The docstring of `printer` contains the
grammar."""
