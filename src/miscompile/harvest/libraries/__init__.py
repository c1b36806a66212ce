"""Operator instances from the tests of DL libraries."""
