"""Errors of programs of torch that no compiler causes; this module does not import torch."""

from miscompile.base.errors import UsageError


class OutsideTorchError(UsageError):
    """An instance names something that is not an operator of torch, or not one of this release."""


class ExportRefusedError(Exception):
    """Torch cannot capture a graph of a program, so that no compiler receives it.

    The message begins with the class of torch's own error. `known-<via>.toml` of each front end lists this class.
    """
