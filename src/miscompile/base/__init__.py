"""Ground floor: errors, named random streams, digests, element types, specs."""
