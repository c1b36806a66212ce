"""Errors of programs of Keras that no compiler causes; this module does not import Keras."""

from miscompile.base.errors import UsageError


class OutsideKerasError(UsageError):
    """An instance names something that is not a layer or operation of Keras, or not one of this release."""


class NotSymbolicError(Exception):
    """Keras cannot construct a model of a program, so that no compiler receives it.

    The message begins with the class of the library's own error. `known-<via>.toml` of each front end lists this class.
    """
