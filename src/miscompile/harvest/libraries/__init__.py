"""Operator instances out of the tests of DL libraries."""
