"""The lowest layer: errors, named random streams, digests, element types, specs."""
