"""Programs, cases and recipes: the values that describe one test."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from miscompile.base.digest import digest_bytes
from miscompile.core.tensor import Tensor

Dim = int | str | None
"""A size, the name of a symbolic size, or an unknown size."""


class Port(NamedTuple):
    """One input or output of a program; a tuple, because a test makes dozens of them.

    `exact` marks an output whose bits must be the same in every correct implementation, because the values that reach
    it are small enough integers, or are only moved and compared.
    """

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """Bytes of a kind (`onnx`: a serialised ModelProto) with their signature."""

    kind: str
    payload: bytes
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @property
    def digest(self) -> str:
        """Digest of the bytes, stable over processes."""
        return digest_bytes(self.kind.encode(), self.payload)


Feed = tuple[Tensor, ...]
"""One set of inputs, in the order of `Program.inputs`."""


@dataclass(frozen=True, slots=True)
class Case:
    """A program, the feeds to run it on, and the recipe that made it.

    A recipe holds JSON values only: producer spec, seed, index, and facts that the producer records
    (motifs, operators). A program is compiled once and run on every feed.
    """

    program: Program
    feeds: tuple[Feed, ...]
    recipe: Mapping[str, Any] = field(default_factory=dict)
