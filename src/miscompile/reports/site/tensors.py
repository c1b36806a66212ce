"""Tensors as tables of a page."""

from collections.abc import Sequence
from dataclasses import dataclass

from miscompile.core.case import Case, Port
from miscompile.core.tensor import Tensor, text_of
from miscompile.graph.text.elements import format_elements

MOST_ELEMENTS = 96
_COLUMNS = 12


@dataclass(frozen=True, slots=True)
class Shown:
    """A tensor as rows of texts; `rest` is the number of elements that are not shown."""

    name: str
    kind: str
    rows: Sequence[Sequence[str]]
    rest: int = 0


def shown_inputs(case: Case) -> list[list[Shown]]:
    """Return the inputs of each feed of a case."""
    return [
        [_shown(port, value) for port, value in zip(case.program.inputs, feed, strict=False)] for feed in case.feeds
    ]


def _shown(port: Port, value: Tensor) -> Shown:
    flat = value.array.reshape(-1)[:MOST_ELEMENTS]
    texts = [text_of(one) for one in flat] if value.dtype == "string" else format_elements(Tensor(value.dtype, flat))
    if value.array.dtype.kind == "c":
        texts = [f"({real}, {imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=True)]
    width = value.shape[-1] if value.shape and 0 < value.shape[-1] <= _COLUMNS else _COLUMNS
    rows = [texts[start : start + width] for start in range(0, len(texts), width)]
    kind = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    return Shown(port.name, kind, rows, int(value.array.size) - len(flat))
