"""The reference build: one compilation of a function in which barriers isolate all primitives from each other.
Standalone scripts contain it where they build a reference.

If a function runs call by call, every primitive is a compilation of its own, with its fixed costs. One compilation
with barriers between the primitives takes a fifth of the time. It uses XLA's older code generator, which is faster
for single operations and shares only a part of its code with the default one, so that fewer bugs affect both builds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

OLDER = {"xla_cpu_use_fusion_emitters": False}
"""Options that select the older code generator. It converts 8-bit floats wrongly (jaxlib 0.10.2: 0.46875 for 0.5),
and refuses negative padding."""

ResultChange = Callable[[Any], Any]
"""What becomes of a result of a primitive before it is used."""

EXACT = frozenset({
    "abs", "argmax", "argmin", "broadcast_in_dim", "clamp", "concatenate", "copy", "copy_p", "cummax", "cummin",
    "dynamic_slice", "dynamic_update_slice", "expand_dims", "gather", "max", "min", "neg", "pad", "reduce_max",
    "reduce_min", "reduce_window_max", "reduce_window_min", "reshape", "rev", "scatter", "select_and_gather_add",
    "select_n", "sign", "slice", "sort", "squeeze", "stop_gradient", "top_k", "transpose",
})  # fmt: skip
"""Primitives that select or move numbers and round nothing. Noise on the result of a maximum would also keep it from
being equal to any operand, and the derivative asks which one it is."""

INNER = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr"}
"""Primitives that only call a function, with the parameter that contains the function."""


def isolated(
    function: Callable[..., Sequence[jax.Array]], inputs: Sequence[Any], rewrite: Callable[..., Any] | None = None
) -> Callable[..., Sequence[jax.Array]]:
    """Return `function` compiled for `inputs` (arrays, or shapes and types) with barriers between all primitives.

    The function with barriers is passed through `rewrite(function, inputs)`. Raises the exceptions of tracing and
    compilation.
    """
    traced = jax.make_jaxpr(lambda *values: function(*values))(*inputs)
    narrow = any(is_narrow(atom) for atom in atoms_of(traced.jaxpr))
    parted: Callable[..., Any] = lambda *values: run_parted(traced, values)  # noqa: E731 - one of two functions
    lowered = jax.jit(rewrite(parted, inputs) if rewrite else parted).lower(*inputs)
    return compile_older(lowered, {} if narrow else OLDER)


def compile_older(lowered: Any, options: dict[str, bool]) -> Callable[..., Sequence[jax.Array]]:  # noqa: ANN401
    """Compile, without `options` if XLA raises with them, because the older generator lacks a few operations."""
    compiled: Callable[..., Sequence[jax.Array]]
    try:
        compiled = lowered.compile(options)
    except jax.errors.JaxRuntimeError:
        if not options:
            raise
        compiled = lowered.compile()
    return compiled


def atoms_of(jaxpr: Any) -> Iterator[Any]:  # noqa: ANN401 - a Jaxpr, which has no public name
    """Yield the inputs and outputs of equations, also in the bodies of calls and of control flow."""
    for equation in jaxpr.eqns:
        yield from (*equation.invars, *equation.outvars)
        for body in jax.tree.leaves(equation.params, is_leaf=lambda value: isinstance(value, core.ClosedJaxpr)):
            if isinstance(body, core.ClosedJaxpr):
                yield from atoms_of(body.jaxpr)


def is_narrow(atom: Any) -> bool:  # noqa: ANN401 - a variable or a literal
    """Tell whether a value has an 8-bit float type."""
    dtype = atom.aval.dtype
    return bool(jnp.issubdtype(dtype, jnp.floating) and dtype.itemsize == 1)


def as_it_is(value: Any) -> Any:  # noqa: ANN401 - an array
    """Return a result unchanged."""
    return value


def run_parted(
    body: Any,  # noqa: ANN401 - a ClosedJaxpr
    values: Sequence[Any],
    change: ResultChange = as_it_is,
) -> list[Any]:
    """Evaluate the equations in order, with a barrier after each, and after constants, which XLA would fold.

    `change` is applied to each constant, and to each result of a primitive that rounds.
    """
    jaxpr = body.jaxpr
    consts = lax.optimization_barrier(list(map(change, body.consts)))
    known = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *values), strict=True))

    def get(atom: Any) -> Any:  # noqa: ANN401
        return atom.val if isinstance(atom, core.Literal) else known[atom]

    for equation in jaxpr.eqns:
        operands = [get(atom) for atom in equation.invars]
        known.update(zip(equation.outvars, results_of(equation, operands, change), strict=True))
    return [get(atom) for atom in jaxpr.outvars]


def results_of(
    equation: Any,  # noqa: ANN401 - a JaxprEqn
    operands: Sequence[Any],
    change: ResultChange,
) -> Sequence[Any]:
    """Return the results of one equation behind a barrier."""
    primitive, params = equation.primitive, equation.params
    if primitive.name in INNER:
        return run_parted(params[INNER[primitive.name]], operands, change)
    if primitive.name in CONTROL:
        results = CONTROL[primitive.name](params, operands, change)
    else:
        made = primitive.get_bind_params(params)
        functions, given = made if isinstance(made, tuple) else ((), made)  # a pair up to JAX 0.6
        results = primitive.bind(*functions, *operands, **given)
    several = results if primitive.multiple_results else [results]
    if primitive.name not in (*CONTROL, *EXACT):
        several = list(map(change, several))
    parted: Sequence[Any] = lax.optimization_barrier(list(several))
    return parted


def choose(params: dict[str, Any], operands: Sequence[Any], change: ResultChange) -> Sequence[Any]:
    """Return the results of a conditional."""

    def branch(body: Any) -> Callable[..., list[Any]]:  # noqa: ANN401
        return lambda *values: run_parted(body, values, change)

    index, *values = operands
    results: Sequence[Any] = lax.switch(index, [branch(body) for body in params["branches"]], *values)
    return results


def repeat(params: dict[str, Any], operands: Sequence[Any], change: ResultChange) -> Sequence[Any]:
    """Return the results of a loop with a condition."""
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    for_test, for_body, states = operands[:first], operands[first:second], operands[second:]
    results: Sequence[Any] = lax.while_loop(
        lambda carried: run_parted(params["cond_jaxpr"], (*for_test, *carried), change)[0],
        lambda carried: run_parted(params["body_jaxpr"], (*for_body, *carried), change),
        list(states),
    )
    return results


def scan_rows(params: dict[str, Any], operands: Sequence[Any], change: ResultChange) -> Sequence[Any]:
    """Return the results of a scan over rows."""
    first, carried = params["num_consts"], params["num_carry"]
    fixed, states, rows = operands[:first], operands[first : first + carried], operands[first + carried :]

    def step(values: list[Any], slices: list[Any]) -> tuple[list[Any], list[Any]]:
        results = run_parted(params["jaxpr"], (*fixed, *values, *slices), change)
        return results[:carried], results[carried:]

    last, every = lax.scan(step, list(states), list(rows), length=params["length"], reverse=params["reverse"])
    return (*last, *every)


CONTROL: Mapping[str, Callable[[dict[str, Any], Sequence[Any], ResultChange], Sequence[Any]]] = {
    "cond": choose,
    "while": repeat,
    "scan": scan_rows,
}
"""Primitives with bodies, which are traced again so that their equations get barriers too."""
