"""Control flow in numpy, for tests of the writer."""

from typing import Any

import numpy as np

from miscompile.targets.lowering.table import lowers


def chosen(results: Any, outputs: int) -> Any:
    """One without a tuple."""
    return tuple(results)[:outputs] if outputs > 1 else results[0]


@lowers("If")
def branch(condition: Any, *, then_branch: Any, else_branch: Any, outputs: int) -> Any:
    """One of two."""
    return chosen(then_branch() if condition else else_branch(), outputs)


@lowers("Loop")
def loop(limit: Any, going: Any = None, *states: Any, body: Any, turns: int | None, outputs: int) -> Any:
    """Turn by turn; rows only where the number of turns is told."""
    turn, on, rows = 0, going is None or going, []
    while on and (limit is None or turn < limit):
        on, *results = body(np.int64(turn), on, *states)
        states = tuple(results[: len(states)])
        rows.append(results[len(states) :])
        turn += 1
    assert turns in (None, turn)
    return chosen((*states, *[np.stack(row) for row in zip(*rows, strict=True)]), outputs)


@lowers("Scan")
def scan(*values: Any, body: Any, num_scan_inputs: int, outputs: int) -> Any:
    """Along the first axis."""
    count, rows = len(values) - num_scan_inputs, []
    states = values[:count]
    for parts in zip(*values[count:], strict=True):
        results = body(*states, *parts)
        states = results[:count]
        rows.append(results[count:])
    return chosen((*states, *[np.stack(row) for row in zip(*rows, strict=True)]), outputs)


@lowers("Identity")
def identity(x: Any) -> Any:
    """The same."""
    return x
