"""Neighbours of ONNX nodes, guided by the schemas of their operators in the operator sets that the tests use.

Run as `python -m miscompile.harvest.neighbours.onnx OUT SEED COUNT FIRST TESTS`; see
`miscompile.harvest.neighbours.run`.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from onnx import defs

from miscompile.base.errors import ModelError
from miscompile.core.case import Dim
from miscompile.graph.check import check
from miscompile.graph.model import Model, TensorType
from miscompile.harvest.constraints.onnx import operation_of
from miscompile.harvest.neighbours.body import disagreement, overflows
from miscompile.harvest.neighbours.call import Subject
from miscompile.harvest.neighbours.run import write
from miscompile.instances.instance import Instance, Parent
from miscompile.oracles.unspecified.pages.verdict import broken
from miscompile.producers.instances.evaluation import evaluated
from miscompile.producers.instances.onnx_model import split_api, to_model
from miscompile.producers.instances.onnx_values import from_array, schema_of, to_array
from miscompile.producers.instances.onnx_versions import restate_all, restated


def subjects(tests: Iterable[Instance]) -> Iterator[tuple[Subject, list[Instance]]]:
    """Yield the operators without bodies whose operands are dense tensors, with their instances in the tests.

    An operator that changed between operator sets appears once, in the newest of its versions that tests use.
    """
    found: dict[str, dict[int, list[Instance]]] = {}
    for one in tests:
        domain, op = split_api(one.api)
        schema = schema_of(op, one.version, domain)
        if one.source == "tests" and schema is not None and not schema.deprecated:
            found.setdefault(one.api, {}).setdefault(schema.since_version, []).append(one)
    for api, versions in sorted(found.items()):
        domain, op = split_api(api)
        newest = max(versions)
        schema = schema_of(op, newest, domain)
        operation = operation_of(schema)
        if operation is None or len(schema.inputs) != sum(one.place == "called" for one in operation.parameters):
            continue
        optional = defs.OpSchema.FormalParameterOption.Optional
        yield Subject(operation, tuple(one.option == optional for one in schema.outputs)), versions[newest]


def refusal(instance: Instance) -> str:
    """Return why a node is no test, empty if all judges agree on it.

    The judges are onnx's checker and inference, the operator's page, the reference evaluator, and the body that the
    schema gives for the operator as a function. The model is the one that a migration makes. Where two judges disagree,
    one of them is wrong, so the node is no test.
    """
    try:
        model, feed = to_model(instance, "known")
        check(model)
    except ModelError:
        return "onnx's checker refuses it"
    said = broken(instance)
    if said:
        return said
    names = [info.name for info in model.graph.inputs]
    fed = {name: to_array(value) for name, value in zip(names, feed, strict=True)}
    try:
        results = evaluated(model, fed)
        agrees = _agree(model, results)
    except ModelError:
        return "onnx's reference evaluator refuses it"
    if not agrees:
        return "onnx's inference and its reference evaluator disagree"
    if overflows(instance, results):
        return "a result of finite operands is not finite"
    return disagreement(instance, results)


def restatements(neighbour: Instance) -> list[Instance]:
    """Return a neighbour in the other operator sets that can express it, with its parent in the same one if that can.

    Compilers of today take no operator of the newest sets, and older releases take fewer.
    """
    found, _ = restate_all([neighbour], lambda _: None)
    return [replace(one, source=neighbour.source, parent=_parent_in(neighbour, one.version)) for one in found]


def _parent_in(neighbour: Instance, version: int) -> Parent | None:
    before = neighbour.parent
    other = restated(before.instance, version) if before else None
    if before is None or other is None:
        return None
    domain, op = split_api(other.api)
    schema = schema_of(op, version, domain)
    names = {f"input {place}": one.name for place, one in enumerate(schema.inputs)}
    return Parent(replace(other, source=before.instance.source), names)


def _agree(model: Model, results: dict[str, object]) -> bool:
    """Tell whether the results have the declared types. Raises ModelError for one that is no tensor."""
    for info in model.graph.outputs:
        found = from_array(results[info.name])
        if isinstance(info.type, TensorType) and (
            found.dtype != info.type.dtype or not _fits(found.shape, info.type.shape)
        ):
            return False
    return True


def _fits(shape: tuple[int, ...], declared: tuple[Dim, ...] | None) -> bool:
    if declared is None:
        return True
    sizes = zip(shape, declared, strict=False)
    return len(shape) == len(declared) and all(one == other or not isinstance(other, int) for one, other in sizes)


if __name__ == "__main__":
    write(sys.argv[1:], subjects, refusal, restatements)
