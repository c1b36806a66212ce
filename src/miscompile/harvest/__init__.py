"""Harvests of tests and documentation: patterns of optimisations and instances of operators."""
