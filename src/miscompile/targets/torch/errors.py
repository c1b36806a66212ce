"""Errors of programs of torch that are not the fault of any compiler; nothing here imports torch."""

from miscompile.base.errors import UsageError


class OutsideTorchError(UsageError):
    """An instance names something that is not an operator of torch, or not one of this release."""


class ExportRefusedError(Exception):
    """Torch itself makes no graph of a program, so that no compiler behind it gets to see it.

    The message begins with the class of torch's own error. `known-<via>.toml` of each front end lists this class.
    """
