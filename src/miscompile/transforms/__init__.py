"""Transformations of a program into equivalent programs."""
