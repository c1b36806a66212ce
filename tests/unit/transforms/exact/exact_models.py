"""Generated models with everything that a relation must mind, and how ONNX Runtime and the reference run them.

ONNX Runtime runs with every optimisation off. A model that it does not take is run by onnx's reference implementation;
one that neither takes is left out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

from miscompile.base.errors import ModelError, RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case, Feed, Port
from miscompile.core.ports import Producer
from miscompile.core.run import Build
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.dynamic.producer import DynamicProducer
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.targets.onnxruntime.adapter import OnnxRuntime
from miscompile.targets.reference.adapter import Reference
from miscompile.transforms.functions.transform import Functions

Results = tuple[tuple[Tensor | None, ...], ...]

KNOWN = (
    "Missing Input",  # a 16-bit float that bodies two levels down capture is lost when casts are inserted
    "squeeze.h",  # Squeeze with an empty name for its axes
    "If 'num_outputs' is specified",  # Split with an empty name for its sizes
    "<class 'NoneType'>] and attributes ['inverse', 'onesided']",  # onnx's evaluator: DFT without axis
    "shape from first output",  # a Scan over symbolic sizes, one of which is zero
)
"""What ONNX Runtime and onnx's evaluator say of valid models that they spoil or do not take."""

OPSETS = tuple(range(13, 24))
_OFF = Build("off")
_RICH = GeneratorOptions(
    boundary=0.0,
    large=0.0,
    max_rank=5,
    nodes=5,
    spread=0.2,
    control=0.08,
    motifs=0.2,
    quantised=0.25,
    containers=0.1,
    variants=1,
    opsets=OPSETS,
    max_elements=96,
)
_COUNTS = {"strict": 230, "control": 50, "functions": 40, "dynamic": 40}


@dataclass(frozen=True, slots=True)
class Sample:
    """A model, what it is fed, and what came of that under `target`; `valid`: whether the full check passes."""

    kind: str
    number: int
    case: Case
    model: Model
    target: str
    results: Results
    valid: bool

    @property
    def name(self) -> str:
        return f"{self.kind} {self.number}"


@cache
def runners() -> dict[str, OnnxRuntime | Reference]:
    return {"onnxruntime": OnnxRuntime(), "reference": Reference()}


def run(case: Case, payload: bytes, target: str, feeds: Sequence[Feed] | None = None) -> Results:
    """Return the outputs of the case's program, given as `payload`, for each feed."""
    built = runners()[target].build(replace(case.program, payload=payload), _OFF)
    return tuple(built.run(feed) for feed in (case.feeds if feeds is None else feeds))


def run_or_known(sample: "Sample", payload: bytes) -> Results | None:
    """Return what the sample's target makes of `payload`; None where it fails in a way that is known."""
    try:
        return run(sample.case, payload, sample.target)
    except Exception as error:
        if any(words in str(error) for words in KNOWN):
            return None
        raise AssertionError(f"{sample.name}: {error}") from error


def run_fed(case: Case, payload: bytes, target: str, inputs: tuple[Port, ...], feeds: Sequence[Feed]) -> Results:
    """Return what `run` does for a program of another signature."""
    other = replace(case, program=replace(case.program, inputs=inputs))
    return run(other, payload, target, feeds)


def same(first: Results, second: Results) -> bool:
    """Tell whether all outputs are the same, bit by bit."""
    return len(first) == len(second) and all(
        (one is None and other is None) or (one is not None and other is not None and one.same(other))
        for ones, others in zip(first, second, strict=True)
        for one, other in zip(ones, others, strict=True)
    )


def valid(model: Model | bytes) -> bool:
    try:
        check(model)
    except ModelError:
        return False
    return True


@cache
def samples(share: int = 1) -> tuple[Sample, ...]:
    """Return the models, or the first one of `share` of each kind, made once for all tests.

    Those whose own results vary from run to run are left out.
    """
    strict, control = Strict(_RICH, Support(open=True)), Strict(replace(_RICH, control=0.6), Support(open=True))
    dynamic = DynamicProducer(replace(_RICH, control=0.0, containers=0.0), Support(open=True))
    producers: dict[str, Producer] = {"control": control, "dynamic": dynamic}
    found: list[Sample] = []
    for kind, count in _COUNTS.items():
        producer = producers.get(kind, strict)
        number = made = 0
        while made < count // share:
            number += 1
            sample = None
            with suppress(RejectedDraft, UsageError, ModelError):
                case = producer.propose(stream(5, kind, number))
                model = read(case.program.payload)
                if kind == "functions":
                    model = Functions(number, 3, overloads=False, attributes=0.0).apply(model)
                sample = _sample(kind, number, case, model)
            if sample is not None:
                found.append(sample)
                made += 1
    return tuple(found)


def _sample(kind: str, number: int, case: Case, model: Model) -> Sample | None:
    if not model.graph.inputs:
        return None  # of constants alone there is nothing to change
    case = replace(case, program=replace(case.program, payload=emit(model)))
    for target in ("onnxruntime", "reference"):
        try:
            results = run(case, case.program.payload, target)
            again = run(case, case.program.payload, target)
        except Exception:  # noqa: BLE001, S112 - whatever a target raises for what it does not take
            continue
        if same(results, again):
            return Sample(kind, number, case, model, target, results, valid(model))
    return None
