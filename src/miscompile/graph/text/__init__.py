"""The text form of graphs: readable, diffable, and exact to the bit. `docs` of the grammar stand in `printer`."""
