"""Producers of valid test programs."""
