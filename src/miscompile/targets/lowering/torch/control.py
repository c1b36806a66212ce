"""Control flow, lowered to torch's operators, which Inductor compiles, and in eager mode to Python's control flow.

In eager mode those operators would trace and compile their functions, on which the reference must not depend. The
inputs and outputs of their functions must not share memory, so they are copied.
Sources: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

# ruff: noqa: ANN401 - tensors, and nested sequences of numbers

from typing import Any

import torch

from miscompile.targets.lowering.table import lowers


def copies(values: Any) -> Any:
    """Return contiguous copies."""
    return tuple([value.clone(memory_format=torch.contiguous_format) for value in values])


def captured(*values: Any) -> Any:
    """Return replacements for outer values that bodies capture, because some of these may be views of others."""
    return copies(values) if torch.compiler.is_compiling() else values


def chosen(results: Any, outputs: int) -> Any:
    """Return the requested number of results; a single one without a tuple."""
    return tuple(results)[:outputs] if outputs > 1 else results[0]


def stepped(function: Any, states: Any, slices: Any) -> Any:
    """Return the states after the last slice, and the further results of `function`, stacked over all slices.

    The operator requires at least one state and one further result, so additional values may follow.
    """
    count = len(states)
    if not torch.compiler.is_compiling():
        rows = []
        for parts in zip(*slices, strict=True):
            results = function(states, parts)
            states = results[:count]
            rows.append(results[count:])
        return (*states, *[torch.stack(row) for row in zip(*rows, strict=True)])

    def step(carried: Any, parts: Any) -> Any:
        results = copies(function(carried[:count], parts))
        return list(results[:count] or copies(carried)), list(results[count:] or copies(carried[:1]))

    last, rows = torch._higher_order_ops.scan(step, list(copies(states)) or [torch.zeros(1)], list(copies(slices)))
    return (*last[:count], *rows)


@lowers("If")
def branch(condition: Any, *, then_branch: Any, else_branch: Any, outputs: int) -> Any:
    """Return the results of one of two functions."""
    if not torch.compiler.is_compiling():
        return chosen(then_branch() if condition else else_branch(), outputs)
    results = torch.cond(condition.reshape(()), lambda: copies(then_branch()), lambda: copies(else_branch()), ())
    return chosen(results, outputs)


@lowers("Loop")
def loop(limit: Any, going: Any = None, *states: Any, body: Any, turns: int | None, outputs: int) -> Any:
    """The final carried states, and the stacked results of all iterations where their number is known."""
    on = torch.ones((), dtype=torch.bool) if going is None else going.reshape(())
    if turns is not None and outputs > len(states):
        results = stepped(lambda carried, parts: body(parts[0], on, *carried)[1:], states, (torch.arange(turns),))
        return chosen(results, outputs)

    def goes_on(turn: Any, on: Any, *_: Any) -> Any:
        return on.clone() if limit is None else torch.logical_and(on, turn < limit.reshape(()))

    def advance(turn: Any, on: Any, *carried: Any) -> Any:
        on, *results = body(turn, on, *carried)
        return (turn + 1, on.reshape(()), *results)

    values = (torch.zeros((), dtype=torch.int64), on, *states)
    if not torch.compiler.is_compiling():
        while goes_on(*values):
            values = advance(*values)
    else:
        values = torch._higher_order_ops.while_loop(goes_on, lambda *carried: copies(advance(*carried)), copies(values))
    return chosen(values[2:], outputs)


def sliced(x: Any, axis: int, back: int) -> Any:
    """Return x with the scanned axis moved to the front, and reversed if `back`."""
    x = torch.movedim(x, axis, 0)
    return torch.flip(x, (0,)) if back else x


def laid_along(rows: Any, axis: int, back: int) -> Any:
    """Return the results of all iterations stacked along an axis, the last one first if `back`."""
    return torch.movedim(torch.flip(rows, (0,)) if back else rows, 0, axis)


@lowers("Scan")
def scan(
    *values: Any,
    body: Any,
    num_scan_inputs: int,
    scan_input_axes: Any = None,
    scan_input_directions: Any = None,
    scan_output_axes: Any = None,
    scan_output_directions: Any = None,
    outputs: int,
) -> Any:
    """The final carried states, and the stacked results, of a scan over slices of each value along an axis."""
    count = len(values) - num_scan_inputs
    none = (0,) * num_scan_inputs
    slices = list(map(sliced, values[count:], scan_input_axes or none, scan_input_directions or none))
    results = stepped(lambda carried, parts: body(*carried, *parts), values[:count], slices)
    last, rows = results[:count], results[count:]
    laid = map(laid_along, rows, scan_output_axes or (0,) * len(rows), scan_output_directions or (0,) * len(rows))
    return chosen((*last, *laid), outputs)
