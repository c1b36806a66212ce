"""Observing in this process, for tests of what is made of it."""

import numpy as np

from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array
from miscompile.graph.model import Model, TensorType
from miscompile.producers.slices.binding import bindings, fed, normalised
from miscompile.producers.slices.observation import Observed, known
from miscompile.producers.slices.observer import observe


def drawn(model: Model, seed: int) -> dict[str, Array]:
    """Inputs of a bound model: floats around zero."""
    random = array_stream(seed, "inputs")
    found: dict[str, Array] = {}
    for info in fed(model.graph):
        assert isinstance(info.type, TensorType)
        assert info.type.shape is not None
        sizes = [size for size in info.type.shape if isinstance(size, int)]
        assert len(sizes) == len(info.type.shape)
        found[info.name] = random.uniform(-3, 3, sizes).astype(info.type.dtype)
    return found


def seen(model: Model, feeds: int = 3) -> Observed:
    """What the first binding of `model` shows on drawn inputs."""
    bound = next(bindings(normalised(model)))
    lines = [{"feed": row, **line} for row in range(feeds) for line in observe(bound, drawn(bound, row))]
    return known(bound, lines)


def without_run(model: Model) -> Observed:
    """What inference alone says."""
    return known(next(bindings(normalised(model))), [])


def values_of(model: Model, feed: dict[str, Array]) -> dict[str, Array]:
    """Every value of a model, by onnx's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    from miscompile.graph.emit import emit

    found = ReferenceEvaluator(emit(model)).run(None, feed, intermediate=True)
    assert isinstance(found, dict)
    return {name: np.asarray(value) for name, value in found.items() if value is not None}
