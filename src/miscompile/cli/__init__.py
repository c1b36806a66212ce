"""Verbs: parse, call, print."""
