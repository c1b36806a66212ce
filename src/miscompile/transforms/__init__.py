"""Equivalent ways to say the same program."""
