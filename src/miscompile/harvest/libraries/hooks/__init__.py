"""Hooks that run inside a library's tests, in child processes, and record how the tests use operators."""
