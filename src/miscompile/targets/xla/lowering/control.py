"""Control flow, lowered to XLA's conditionals, while loops and scans.

Sources: https://onnx.ai/onnx/operators/onnx__If.html, onnx__Loop.html, onnx__Scan.html
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax

from miscompile.targets.lowering.table import lowers

BodyFunction = Callable[..., tuple[jax.Array, ...]]


def chosen(results: Sequence[jax.Array], outputs: int) -> jax.Array | tuple[jax.Array, ...]:
    """Return the requested number of results; a single one without a tuple."""
    return tuple(results)[:outputs] if outputs > 1 else results[0]


@lowers("If")
def branch(
    condition: jax.Array, *, then_branch: BodyFunction, else_branch: BodyFunction, outputs: int
) -> jax.Array | tuple[jax.Array, ...]:
    """Return the results of one of two functions."""
    return chosen(lax.cond(condition.reshape(()), then_branch, else_branch), outputs)


@lowers("Loop")
def loop(
    limit: jax.Array | None,
    going: jax.Array | None = None,
    *states: jax.Array,
    body: BodyFunction,
    turns: int | None,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """The final carried states, and the stacked results of all iterations where their number is known."""

    def step(carried: tuple[jax.Array, ...], turn: jax.Array) -> tuple[Sequence[jax.Array], Sequence[jax.Array]]:
        _, *results = body(turn, jnp.array(True), *carried)
        return tuple(results[: len(states)]), tuple(results[len(states) :])

    def goes_on(carried: tuple[jax.Array, ...]) -> jax.Array:
        turn, on = carried[:2]
        return on if limit is None else on & (turn < limit.reshape(()))

    def advance(carried: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        on, *results = body(*carried)
        return carried[0] + 1, on.reshape(()), *results

    if turns is not None:
        last, rows = lax.scan(step, states, jnp.arange(turns))
        return chosen((*last, *rows), outputs)
    start = jnp.zeros((), jnp.int64), jnp.array(True) if going is None else going.reshape(())
    return chosen(lax.while_loop(goes_on, advance, (*start, *states))[2:], outputs)


def sliced(x: jax.Array, axis: int, back: int) -> jax.Array:
    """Return x with the scanned axis moved to the front, and reversed if `back`."""
    x = jnp.moveaxis(x, axis, 0)
    return jnp.flip(x, 0) if back else x


def laid_along(rows: jax.Array, axis: int, back: int) -> jax.Array:
    """Return the results of all iterations stacked along an axis, the last one first if `back`."""
    return jnp.moveaxis(jnp.flip(rows, 0) if back else rows, 0, axis)


@lowers("Scan")
def scan(
    *values: jax.Array,
    body: BodyFunction,
    num_scan_inputs: int,
    scan_input_axes: tuple[int, ...] | None = None,
    scan_input_directions: tuple[int, ...] | None = None,
    scan_output_axes: tuple[int, ...] | None = None,
    scan_output_directions: tuple[int, ...] | None = None,
    outputs: int,
) -> jax.Array | tuple[jax.Array, ...]:
    """The final carried states, and the stacked results, of a scan over slices of each value along an axis."""
    count = len(values) - num_scan_inputs
    none = (0,) * num_scan_inputs
    slices = list(map(sliced, values[count:], scan_input_axes or none, scan_input_directions or none))

    def step(
        carried: tuple[jax.Array, ...], parts: list[jax.Array]
    ) -> tuple[tuple[jax.Array, ...], tuple[jax.Array, ...]]:
        results = body(*carried, *parts)
        return results[:count], results[count:]

    last, rows = lax.scan(step, values[:count], slices)
    laid = map(laid_along, rows, scan_output_axes or (0,) * len(rows), scan_output_directions or (0,) * len(rows))
    return chosen((*last, *laid), outputs)
