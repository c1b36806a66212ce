"""The text form of graphs: readable, diffable, and exact to the bit. The grammar stands at the head of `printer`."""
