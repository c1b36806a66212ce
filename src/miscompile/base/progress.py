"""The type of the functions to which long-running work reports its progress, one line of text at a time."""

from collections.abc import Callable

ProgressListener = Callable[[str], None]
"""Receives one line about the work in progress, without a line break at its end."""
