"""Signatures, reduction, bisection, scripts."""
