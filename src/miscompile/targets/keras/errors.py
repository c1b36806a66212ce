"""Errors of programs of Keras that are not the fault of any compiler; nothing here imports Keras."""

from miscompile.base.errors import UsageError


class OutsideKerasError(UsageError):
    """An instance names something that is no layer or operation of Keras, or not one of this release."""


class NotSymbolicError(Exception):
    """Keras itself makes no model of a program, so that no compiler behind it gets to see it.

    The message begins with the class of the library's own error. `known-<via>.toml` of each front end lists this class.
    """
