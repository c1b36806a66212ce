"""Harvest of instances from the backend tests of the onnx package, for every version of the operators that they use."""

import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from miscompile.base.errors import ModelError
from miscompile.core.events import ProgressListener
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model, OptionalType, SequenceType, ValueType
from miscompile.graph.read import read
from miscompile.instances.archive import Archive, distinct
from miscompile.instances.instance import Instance
from miscompile.producers.instances.onnx_nodes import NodeHarvest, gather, gather_drawn, operators
from miscompile.producers.instances.onnx_values import from_array
from miscompile.producers.instances.onnx_versions import restate_all

_NODE = "onnx.backend.test node"
"""The prefix of the origin of an instance from a node case."""
_RUN = ("simple", "pytorch-converted", "pytorch-operator")
"""Sets of models in the wheel that are small enough to run; the wheel lacks the weights of those in `light`."""


def harvest_onnx(on_progress: ProgressListener, *, versions: bool = True) -> Archive:
    """Return every node of onnx's backend tests as an instance, and with `versions` of each operator's versions too.

    `on_progress` receives lines of progress. The harvest takes two minutes and downloads nothing. `figures` count
    cases, nodes, lost nodes by reason, instances, operators, and pairs of operator and version.
    """
    found = NodeHarvest()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # tests overflow on purpose, and old models use old forms
        for place, (name, model, feed) in enumerate(_cases()):
            gather(model, feed, name, found)
            if place % 500 == 499:
                on_progress(f"{place + 1} models, {len(found.instances)} nodes")
        for name, model in _light():
            gather_drawn(model, name, found)
        tested = tuple(distinct(found.instances))
        on_progress(f"{len(found.instances)} nodes, {len(tested)} of them distinct")
        restated, figures = restate_all(tested, on_progress) if versions else ((), {})
    instances = tuple(distinct((*tested, *restated)))
    return Archive("onnx", instances, {"onnx": version("onnx")}, _figures(found, tested, instances, figures))


def _figures(
    found: NodeHarvest, tested: tuple[Instance, ...], instances: tuple[Instance, ...], restated: dict[str, int]
) -> dict[str, Any]:
    pairs = Counter(operators(list(instances)))
    return {
        **dict(sorted(found.counts.items())),
        "lost": dict(found.lost.most_common()),
        "distinct in tests": len(tested),
        "operators": len({instance.api for instance in instances}),
        "operator versions in tests": len(set(operators(list(tested)))),
        "operator versions": len(pairs),
        "restated": restated,
        "instances": len(instances),
    }


def _cases() -> Iterator[tuple[str, Model, dict[str, Any]]]:
    """Yield every model that ships with inputs: name, model, inputs of each of its data sets."""
    from onnx.backend.test.case.node import (
        collect_testcases,
    )  # imported late, because it takes a second and only the harvest needs it

    for item in collect_testcases(None):
        model = read(item.model.SerializeToString())
        for inputs, _ in item.data_sets:
            names = [info.name for info in model.graph.inputs]
            given = [onnx.numpy_helper.to_array(one) if isinstance(one, onnx.TensorProto) else one for one in inputs]
            yield f"{_NODE} {item.name}", model, dict(zip(names, given, strict=False))
    for kind in _RUN:
        for folder in sorted((_data() / kind).iterdir()):
            if (folder / "model.onnx").is_file():
                model = read((folder / "model.onnx").read_bytes())
                for place in sorted(folder.glob("test_data_set_*")):
                    yield f"onnx.backend.test {kind} {folder.name}", model, read_feed(model, place)


@cache
def node_results() -> Mapping[str, tuple[Tensor, ...]]:
    """Return the expected results of onnx's node cases that consist of one node with tensors as results, by origin."""
    from onnx.backend.test.case.node import (
        collect_testcases,
    )  # imported late, because it takes ten seconds and is seldom needed

    found: dict[str, tuple[Tensor, ...]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # tests overflow on purpose
        for item in collect_testcases(None):
            for _, outputs in item.data_sets[:1] if len(item.model.graph.node) == 1 else ():
                if all(isinstance(one, np.ndarray | np.generic) for one in outputs):
                    found[f"{_NODE} {item.name}"] = tuple(map(from_array, outputs))
    return found


def _light() -> Iterator[tuple[str, Model]]:
    for path in sorted((_data() / "light").glob("*.onnx")):
        yield f"onnx.backend.test light {path.stem}", read(path.read_bytes())


def _data() -> Path:
    return Path(onnx.__file__).parent / "backend" / "test" / "data"


def read_feed(model: Model, folder: Path) -> dict[str, Any]:
    """Return the inputs in a folder of onnx's layout (`input_0.pb`, ...), as values for the evaluator."""
    given = [info for info in model.graph.inputs if info.name not in model.graph.initializers]
    infos = given if len(list(folder.glob("input_*.pb"))) <= len(given) else list(model.graph.inputs)
    feed: dict[str, Any] = {}
    for place, info in enumerate(infos):
        path = folder / f"input_{place}.pb"
        if path.is_file():
            feed[info.name] = _parsed(path.read_bytes(), info.type)
    return feed


def _parsed(data: bytes, kind: ValueType | None) -> Any:  # noqa: ANN401 - what the evaluator works with
    match kind:
        case SequenceType():
            return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
        case OptionalType():
            return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
        case None:
            raise ModelError("an input without a type")
        case _:
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))
