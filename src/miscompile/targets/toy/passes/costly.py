"""Faults that only cost time: the program stays right. A pass calls one only if it is switched on."""

import time

from miscompile.targets.toy.ir import Bugs, Code

_CALLS = 400.0
"""Number of calls for which the faulty pass takes a second of CPU time; it takes eight for twice as many."""

_MOST_SECONDS = 6.0
"""More than a finding of compile time needs, because the pass may run only once."""


def compare_triples(code: Code, bugs: Bugs) -> None:
    """Part of CommonSubexpression: takes CPU time with the cube of the number of calls."""
    if "cubic_cse" in bugs:
        spend(min(_MOST_SECONDS, (len(code.calls) / _CALLS) ** 3))


def spend(seconds: float) -> None:
    """Use so many seconds of CPU time, however busy the machine is."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass
