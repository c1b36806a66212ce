"""Patterns of optimisations as data: written by hand, or mined from tests and from programs."""
