"""Patterns: what an optimisation looks for, as data: written by us, or mined from tests and from programs."""
