"""The conformance kit for operator specs: call `check_spec` in a test of every spec that you write.

It draws calls of every element type on a fresh site and checks the spec's claims with onnx's checker, its shape
inference and its reference evaluator. The report counts calls that the evaluator cannot run, with the reason.
"""

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import checker

from miscompile.base.dtypes import DTYPES, SMALL_INTEGERS
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.emit import model_proto
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.draws import Draw, demand, describe, draw_call, output_types
from miscompile.ops.registry import admitted
from miscompile.ops.spec import Call, OpSpec

OPSETS = (13, 17, 18, 21, 22, 25)
_WIDE = {"float": "float64", "int": "int64", "uint": "uint64"}
_NUMBERS = re.compile(r"\(?\d+(, ?\d+)*,?\)?")


@dataclass(frozen=True, slots=True)
class SpecReport:
    """Counts of one check.

    `calls` counts drawn calls and `rejected` the draws that raised RejectedDraft. `unchecked` counts, by reason, the
    calls whose values could not be compared with the reference. `exact` counts calls compared with wider types.
    `attributes` holds the attribute values that were drawn.
    """

    op: str
    calls: int
    rejected: int
    exact: int
    unchecked: Mapping[str, int]
    dtypes: tuple[str, ...]
    attributes: Mapping[str, tuple[str, ...]]


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    rejected: int = 0
    exact: int = 0
    unchecked: Counter[str] = field(default_factory=Counter)
    dtypes: dict[str, None] = field(default_factory=dict)
    attributes: dict[str, set[str]] = field(default_factory=dict)


class Unchecked(Exception):  # noqa: N818 - not a failure: the reference cannot run this call
    """The reference evaluator cannot run the call."""


def check_spec(spec: OpSpec, *, opsets: Sequence[int] = OPSETS, samples: int = 40, seed: int = 0) -> SpecReport:
    """Check `spec` on `samples` draws for each element type that schema and spec admit in some of `opsets`.

    The draws of a type cycle through the opsets that admit it. Raises AssertionError with the spec, the element type
    and the arguments of `draw_call` that repeat the failing draw; also when half of the draws or more were rejected, or
    when no opset admits the operator.
    """
    tally = _Tally()
    for dtype in spec.dtypes:
        allowed = [opset for opset in opsets if dtype in admitted(spec, opset)]
        for index in range(samples if allowed else 0):
            opset = allowed[index % len(allowed)]
            try:
                _check_draw(spec, dtype, opset, seed, index, tally)
            except AssertionError as error:
                place = f"draw_call(spec, {dtype!r}, {opset}, seed={seed}, index={index})"
                raise AssertionError(f"{spec.op} ({spec.family}), {dtype}, {place}: {error}") from None
        drawn = not allowed or dtype in tally.dtypes
        demand(drawn, f"{spec.op}, {dtype}: every one of {samples} draws was rejected")
    demand(tally.dtypes, f"{spec.op}: none of the opsets {tuple(opsets)} admits any of {spec.dtypes}")
    share = f"{tally.rejected} of {tally.calls + tally.rejected}"
    demand(tally.rejected < tally.calls, f"{spec.op}: the sampler rejected {share} draws")
    attributes = {name: tuple(sorted(values)) for name, values in sorted(tally.attributes.items())}
    return SpecReport(
        spec.op, tally.calls, tally.rejected, tally.exact, dict(tally.unchecked), tuple(tally.dtypes), attributes
    )


def evaluate(draw: Draw) -> list[Array]:
    """Evaluate a draw with onnx.reference; results of types that numpy lacks are ml_dtypes arrays.

    Raises AssertionError when the evaluation of an integer result divides by zero or makes an invalid conversion,
    because those are undefined (float results show it by not being finite), and `Unchecked` where the reference
    cannot run the call.
    """
    proto = model_proto(draw.model())
    feeds = {
        x.name: to_foreign(draw.values[x.name]) for x in draw.call.inputs if x is not None and x.name in draw.inputs
    }
    try:
        return _run(proto, feeds, "raise")
    except FloatingPointError as error:
        floats = any(DTYPES[kind.dtype].kind == "float" for kind in draw.types)
        demand(floats, f"undefined behaviour ({error}): {describe(draw.call)}")
    return _run(proto, feeds, "ignore")


def _run(proto: onnx.ModelProto, feeds: Mapping[str, Any], faults: Any) -> list[Array]:  # noqa: ANN401 - numpy literals
    with warnings.catch_warnings(), np.errstate(all="ignore", divide=faults, invalid=faults):
        warnings.simplefilter("ignore")
        try:
            return [np.asarray(result) for result in evaluator(proto).run(None, dict(feeds))]
        except FloatingPointError:
            raise
        except Exception as error:  # noqa: BLE001 - the reference evaluator fails with anything where it has a gap
            first = _NUMBERS.sub("N", next(iter(str(error).splitlines()), ""))
            raise Unchecked(f"{type(error).__name__}: {first[:80]}") from None


def _check_draw(spec: OpSpec, dtype: str, opset: int, seed: int, index: int, tally: _Tally) -> None:
    try:
        draw = draw_call(spec, dtype, opset, seed=seed, index=index)
    except RejectedDraft:
        tally.rejected += 1
        return
    tally.calls += 1
    tally.dtypes[dtype] = None
    for name, attribute in draw.call.attributes.items():
        tally.attributes.setdefault(name, set()).add(str(attribute.value))
    _check_model(draw)
    try:
        results = evaluate(draw)
        _check_results(draw, results)
        if any(facts.exact for facts in draw.facts):
            _check_exact(draw, results)
            tally.exact += 1
    except Unchecked as reason:
        tally.unchecked[str(reason)] += 1


def _check_model(draw: Draw) -> None:
    try:
        checker.check_model(model_proto(draw.model()), full_check=True)
    except (checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        first = str(error).strip().splitlines()[0]
        raise AssertionError(f"onnx refuses the model: {first} {describe(draw.call)}") from None


def _check_results(draw: Draw, results: Sequence[Array]) -> None:
    demand(len(results) == draw.call.outputs, f"{len(results)} results for {draw.call.outputs} outputs")
    for place, (result, kind, facts) in enumerate(zip(results, draw.types, draw.facts, strict=True)):
        where = f"output {place} of {describe(draw.call)}"
        found = from_foreign(result).dtype
        demand(found == kind.dtype, f"{where} is {found}, inferred was {kind.dtype}")
        demand(_fits(result.shape, kind.shape), f"{where} has shape {result.shape}, inferred was {kind.shape}")
        numbers = _numbers(result)
        if not numbers.size:
            continue
        demand(np.isfinite(numbers).all(), f"{where} is not finite")
        lo, hi = numbers.min().item(), numbers.max().item()
        span = f"[{lo}, {hi}], claimed was [{facts.lo}, {facts.hi}]"
        demand(facts.lo <= lo <= hi <= facts.hi, f"{where} spans {span}")
        demand(not facts.integral or (np.floor(numbers) == numbers).all(), f"{where} is not integral as claimed")


def _check_exact(draw: Draw, results: Sequence[Array]) -> None:
    """Compare outputs that are claimed exact with the same call on the widest type of each kind.

    A result that needed no rounding, or that wraps around, is the wide result converted. Raises `Unchecked` where
    the operator does not take the wide types.
    """
    wide = {name: _widen(value) for name, value in draw.values.items()}
    inputs = tuple(x and type(x)(x.name, wide[x.name].dtype, x.shape, x.facts) for x in draw.call.inputs)
    call = Call(draw.call.op, inputs, draw.call.attributes, draw.call.outputs, draw.call.domain)
    try:
        types = output_types(call, draw.opset, wide)
        truths = evaluate(Draw(call, draw.opset, wide, draw.inputs, types, draw.facts))
    except AssertionError as error:
        raise Unchecked(f"no wider type to compare with: {str(error)[:60]}") from None
    for place, (result, truth, facts) in enumerate(zip(results, truths, draw.facts, strict=True)):
        if facts.exact:
            numbers, expected = _numbers(result), _numbers(truth)
            dtype = from_foreign(result).dtype
            if dtype in SMALL_INTEGERS:
                expected = tensor(expected.astype(np.int64), dtype).numbers()
            same = np.array_equal(numbers, expected if numbers.dtype.kind == "f" else expected.astype(numbers.dtype))
            demand(same, f"output {place} is claimed exact, but a wider type gives another: {describe(draw.call)}")


def _fits(shape: tuple[int, ...], inferred: Sequence[int | str | None] | None) -> bool:
    """Tell whether `shape` equals the inferred shape; a size that inference left open matches any."""
    if inferred is None:
        return True
    return len(shape) == len(inferred) and all(
        not isinstance(known, int) or size == known for size, known in zip(shape, inferred, strict=True)
    )


def _widen(value: Tensor) -> Tensor:
    wide = _WIDE.get(DTYPES[value.dtype].kind)
    return value if wide is None else tensor(value.numbers(), wide)


def _numbers(result: Array) -> Array:
    return from_foreign(result).numbers()
