"""Operator instances: operators of DL libraries with concrete parameters from existing tests."""
