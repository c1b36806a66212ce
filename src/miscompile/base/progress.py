"""How long work reports where it stands: the caller passes a function that receives one line of text at a time."""

from collections.abc import Callable

ProgressListener = Callable[[str], None]
"""Receives one line about the work in progress, without a line break at its end."""
