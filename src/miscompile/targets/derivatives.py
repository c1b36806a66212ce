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

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_options
from miscompile.core.case import Port, Program
from miscompile.targets.directions import FLOATS

DERIVATIVE = "derivative"
"""The name of the transform."""

Mode = Literal["training", "reverse", "forward", "adjoint", "pullback"]
"""`reverse`: the gradients of the inputs, as one program (`torch.func.vjp`, `jax.vjp`). `training`: the same as people
train, so that forward and backward pass are compiled apart and share saved values. `forward`: the derivatives of the
outputs along a direction (`jvp`). `adjoint`: one number that the unoptimised build computes in forward mode and the
others in reverse mode. `pullback`: the same number, in reverse mode at every level, for the noise of the others."""


WORDS = ("gradient of ", "tangent of ", "adjoint product")
"""How the names of results begin that are derivatives."""

REWRITINGS = ("constness", "order", "duplicate", "identity", "wrap")
"""Transforms that leave every value of a program as it is, and therefore all derivatives, also at corners. Rewrite
rules do not: a Floor of integers is equal to them, and its derivative is zero."""


@dataclass(frozen=True, slots=True)
class Derivative:
    """Computes derivatives in a `mode`, along directions that `seed` draws (`targets/directions.py`).

    `rewriting` names the one of `REWRITINGS` that changes the program first, so that it is the derivative of an
    equivalent program. With `noise` the program has a last input, the number of the noise with which it computes.
    """

    seed: int = 0
    mode: Mode = "reverse"
    rewriting: str = ""
    noise: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError for another transform than one of `REWRITINGS`."""
        if self.rewriting and self.rewriting not in REWRITINGS:
            raise SpecError(f"'{self.rewriting}' changes no program before its derivative; {', '.join(REWRITINGS)} do")


def derivative_of(transform: Spec | None) -> Derivative | None:
    """Return the derivative that a transform names; None for another transform. Raises SpecError for bad options."""
    if transform is None or transform.name != DERIVATIVE:
        return None
    made: Derivative = parse_options(Derivative, dict(transform.options), DERIVATIVE)
    return made


def rewritten_by(transform: Spec | None) -> Spec | None:
    """Return the transform that changes the program before its derivative is computed, with its seed; None for none."""
    derivative = derivative_of(transform)
    if derivative is None or not derivative.rewriting:
        return None
    return Spec(derivative.rewriting).with_options(seed=str(derivative.seed))


def of_the_program(transform: Spec | None) -> Spec | None:
    """Return a derivative as it is of the program itself; other transforms as they are."""
    if transform is None or rewritten_by(transform) is None:
        return transform
    return Spec(transform.name, tuple(option for option in transform.options if option[0] != "rewriting"))


def noises_of(transform: Spec) -> tuple[Spec, ...]:
    """Return the transforms whose sensitivities count where builds under `transform` are compared.

    Two builds of an adjoint product are in different modes. An infinite derivative of a value that is not selected is
    no part of the one in forward mode, and gives NaN in reverse mode.
    """
    own = of_the_program(transform) or transform
    derivative = derivative_of(own)
    both = derivative is not None and derivative.mode == "adjoint"
    return (own, own.with_options(mode="pullback")) if both else (own,)


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
    if derivative.mode in ("adjoint", "pullback"):
        return (*inexact, Port(WORDS[2], "float64", ()))
    of = program.outputs if derivative.mode == "forward" else program.inputs
    word = WORDS[derivative.mode == "forward"]
    return (*inexact, *(Port(f"{word}{of[place].name}", of[place].dtype, of[place].shape) for place in moving(of)))
