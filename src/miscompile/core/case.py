"""Programs, cases and recipes: what is to be tested."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from miscompile.base.digest import digest_bytes
from miscompile.core.tensor import Tensor

Dim = int | str | None
"""A size, the name of a symbolic size, or an unknown size."""


class Port(NamedTuple):
    """One input or output of a program; a tuple, because a test makes dozens of them.

    `exact` says of an output that every correct implementation must give the same bits: the values that reach
    it are integers small enough, or only moved and compared.
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

    A recipe holds JSON values only: producer spec, seed, index, and what the producer wants to remember
    (motifs, operators). A program is compiled once and run on every feed.
    """

    program: Program
    feeds: tuple[Feed, ...]
    recipe: Mapping[str, Any] = field(default_factory=dict)
