"""Operator instances drawn from documented constraints on parameters."""
