"""Derivatives of programs, as adapters compute them with their library's automatic differentiation.

The transform `derivative` makes of a program one that computes its results and derivatives of them after these. Every
build that is compared computes the same derivatives, so that an oracle compares the compiled derivative with the one
that the library computes call by call.

Points at which an operator has no derivative (the corner of a Relu, two equal operands of a Max) need no list: noise
(`targets/rounding.py`) moves operands off such points, so that the sensitivity of a derivative there is as large as its
jump.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec, parse_options
from miscompile.core.case import Port, Program
from miscompile.targets.directions import FLOATS

DERIVATIVE = "derivative"
"""The name of the transform."""

Mode = Literal["training", "reverse", "forward", "adjoint"]
"""`reverse`: the gradients of the inputs, as one program (`torch.func.vjp`, `jax.vjp`). `training`: the same as people
train, so that forward and backward pass are compiled apart and share saved values. `forward`: the derivatives of the
outputs along a direction (`jvp`). `adjoint`: one number that the unoptimised build computes in forward mode and the
others in reverse mode."""


@dataclass(frozen=True, slots=True)
class Derivative:
    """Computes derivatives in a `mode`, along directions that `seed` draws (`targets/directions.py`).

    With `noise` the program has a last input, the number of the noise with which its operations compute.
    """

    seed: int = 0
    mode: Mode = "reverse"
    noise: bool = False


def derivative_of(transform: Spec | None) -> Derivative | None:
    """Return the derivative that a transform names; None for another transform. Raises SpecError for bad options."""
    if transform is None or transform.name != DERIVATIVE:
        return None
    made: Derivative = parse_options(Derivative, dict(transform.options), DERIVATIVE)
    return made


def moving(ports: Sequence[Port]) -> list[int]:
    """Return the places of the values that have derivatives."""
    return [place for place, port in enumerate(ports) if port.dtype in FLOATS]


def result_ports(program: Program, transform: Spec | None) -> tuple[Port, ...]:
    """Return the outputs that a build of `program` under `transform` has: for a derivative, further ones at the end.

    No derivative is exact. Raises SpecError for bad options.
    """
    derivative = derivative_of(transform)
    if derivative is None:
        return program.outputs
    inexact = tuple(port._replace(exact=False) for port in program.outputs)
    if derivative.mode == "adjoint":
        return (*inexact, Port("adjoint product", "float64", ()))
    of = program.outputs if derivative.mode == "forward" else program.inputs
    word = "tangent" if derivative.mode == "forward" else "gradient"
    return (*inexact, *(Port(f"{word} of {of[place].name}", of[place].dtype, of[place].shape) for place in moving(of)))
