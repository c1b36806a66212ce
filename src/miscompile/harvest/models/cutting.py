"""Slices of a model of the corpus: of the model as it is, and of what is inside its branches.

Operators of opsets that no campaign writes are converted by onnx first. A model may be one If, whose branches are the
networks for two settings; slices end at a body, so each branch is also cut as if it were the model.
"""

from collections.abc import Iterator
from dataclasses import replace

import onnx
from onnx import version_converter

from miscompile.base.errors import MiscompileError, ModelError
from miscompile.graph.edges import all_names
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Model, Node
from miscompile.graph.read import read
from miscompile.graph.rename import NameSupply
from miscompile.ops.seed import Seed
from miscompile.producers.slices.collection import Collection, slices_of
from miscompile.producers.slices.slices import SliceLimits, SliceTally, kind_of
from miscompile.triage.reduce.flattening import branch, spliced

OLDEST, CONVERTED = 13, 17
"""The oldest opset that campaigns write, and the one that models of older ones are converted to."""

_MOST_BRANCHES = 64
_BRANCHES = ("then_branch", "else_branch")


def slices_of_model(model: Model, name: str, cut: SliceLimits, seed: int = 0, seconds: float = 60.0) -> Collection:
    """Return the slices of a checked model. `seconds` limits the observation of the model, and of each branch.

    Raises ModelError when it has inputs of other kinds than tensors, or cannot be converted.
    """
    tally = SliceTally()
    found: dict[str, Seed] = {}
    notes: list[str] = []
    first: Collection | None = None
    for variant in _variants(modern(model)):
        try:
            cuts = slices_of(variant, name, cut, seed, seconds, tally)
        except (MiscompileError, ValueError) as error:
            if first is None:
                raise
            notes.append(str(error))
            continue
        first = first or cuts
        for piece in cuts.seeds:
            found.setdefault(kind_of(piece), piece)
    pieces = [replace(piece, source=f"{name}/{number}") for number, piece in enumerate(found.values(), 1)]
    inputs = () if first is None else first.inputs
    return Collection(tuple(pieces[: cut.per_model]), 1, (), (*notes, *tally.lines()), inputs)


def modern(model: Model) -> Model:
    """Return `model` in an opset that campaigns write. Raises ModelError when onnx cannot convert it."""
    if model.opset >= OLDEST:
        return model
    try:
        proto = model_proto(model)
        proto.ir_version = max(proto.ir_version, 4)  # before 4 every constant is an input, which the converter refuses
        return read(version_converter.convert_version(proto, CONVERTED))
    except (RuntimeError, ValueError, onnx.checker.ValidationError, version_converter.ConvertError) as error:
        told = " ".join(str(error).split())[:200]
        raise ModelError(f"onnx does not convert opset {model.opset} to {CONVERTED}: {told}") from None


def _variants(model: Model) -> Iterator[Model]:
    """Yield the model, and with every If replaced by its first branch, and by its second."""
    yield model
    if any(_is_if(node) for node in model.graph.nodes):
        for taken in _BRANCHES:
            yield _taken(model, taken)


def _taken(model: Model, taken: str) -> Model:
    graph, supply = model.graph, NameSupply(all_names(model.graph))
    for _ in range(_MOST_BRANCHES):
        place = next((place for place, node in enumerate(graph.nodes) if _is_if(node)), None)
        if place is None:
            break
        graph = spliced(graph, place, branch(graph.nodes[place], taken, supply))
    return replace(model, graph=graph)


def _is_if(node: Node) -> bool:
    return node.op == "If" and not node.domain
