"""The judgement of one build against another, for every kind of outcome: a pure function of outcomes.

Values are compared by the strictest rule that applies: bits where the output is exact, Monte-Carlo arithmetic
elsewhere. The rule `fixed` is the threshold of 1e-3 (Chebyshev distance) that the literature uses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from miscompile.base.errors import ModelError
from miscompile.base.specs import Spec, spec_text, stored_spec
from miscompile.core.case import Case, Port
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
    status_of,
)
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.specialise import is_symbolic
from miscompile.oracles.compare import (
    Mismatch,
    contradiction,
    finite,
    largest_difference,
    mismatches,
    symbols_of,
    within_ulps,
)
from miscompile.oracles.elements import compared
from miscompile.oracles.instrumentation import NOT_NARROWED, ULPS
from miscompile.oracles.montecarlo import (
    FLOOR,
    THRESHOLD,
    bounds,
    joined,
    judge_noise,
    noise_seed,
    noise_twins,
    numbered,
)
from miscompile.oracles.narrow import FITS, Fit, fit_of
from miscompile.oracles.second_executor import is_seconding, seconded
from miscompile.targets.derivatives import noises_of, result_ports
from miscompile.transforms.catalogue import (
    STATIC,
    alters,
    exact_beside,
    is_own,
    keeps_bits,
    may_be_refused,
    present,
    with_noise,
)

CompareRule = Literal["strict", "fixed"]

FIXED_THRESHOLD = 1e-3
SURELY = 0.85
"""Share of the least difference that noise on an output allows. A smaller difference passes without a noise run."""

ADAPTER = "a defect of the adapter"
"""The reason of a verdict that the tool's own failure prevents."""


def judge_pair(
    runs: Sequence[Run], outcomes: Sequence[Outcome], rule: CompareRule, narrowed: Mapping[str, str] = NOT_NARROWED
) -> Verdict:
    """Judge `outcomes[1]` against `outcomes[0]`; the others are those of Monte-Carlo runs and of a second executor.

    Returns Needs with further runs: Monte-Carlo runs, or those of the target's second executor, which must show the
    violation as well.
    """
    return seconded(runs, outcomes, partial(_judge_builds, rule=rule, narrowed=narrowed))


def _judge_builds(
    runs: Sequence[Run], outcomes: Sequence[Outcome], rule: CompareRule, narrowed: Mapping[str, str]
) -> Verdict:
    """Judge `outcomes[1]` against `outcomes[0]`; further outcomes are those of the Monte-Carlo runs.

    The reference itself must have the types that the program declares. `narrowed` maps the types that one of the
    targets computes in a narrower type by design. Returns Needs with noise runs when outputs that are not exact differ:
    one run, or one for each feed of a program with symbolic sizes.
    """
    reference, other = outcomes[0], outcomes[1]
    if not isinstance(reference, Values):
        return _bad_reference(runs, reference, other)
    ports = _ports(runs[0])
    breach = contradiction(ports, reference, symbols_of(runs[0].case))
    if breach and fit_of(runs[0].case, narrowed) == "overflows":
        return Inconclusive("beyond a type that is narrower by design")
    if breach:
        return undeclared(runs[0], breach)
    if isinstance(other, Unsupported | Rejected) and _asks_for_symbols(runs):
        return Inconclusive("symbolic sizes refused")
    if isinstance(other, Unsupported | Rejected | OutOfMemory) and runs[0].build.device != runs[1].build.device:
        return Inconclusive("no values on that device")  # it lacks something, or others have its memory
    if isinstance(other, Unsupported | Rejected) and may_be_refused(runs[1].build.transform):
        return Inconclusive("transform refused")
    if not isinstance(other, Values):
        return bad_build(runs[1], runs[0], other)
    found = mismatches(ports, reference, other)
    if not found:
        return Holds()
    structural = next((m for m in found if m.kind != "wrong"), None)
    if structural:
        return _violated(runs, structural, structural.kind, "structure")
    fit = _fit(runs, narrowed)
    if fit == "overflows":
        return Inconclusive("beyond a type that is narrower by design")
    exact = next((m for m in found if _is_exact(runs, m) and _finite_at(reference, m)), None)
    if exact and fit == "fits":
        return _violated(runs, exact, "wrong", "exact", elements=compared(*_both(reference, other, exact)))
    if not finite(reference):
        return Inconclusive("reference not finite")
    if rule == "fixed":
        return _fixed(runs, reference, other, found)
    if all(_surely_rounding(mismatch, reference, other, narrowed) for mismatch in found):
        return Holds("within the last places")
    noises: dict[Spec | None, list[Outcome]] = {}
    for run, outcome in zip(runs[2:], outcomes[2:], strict=True):
        noises.setdefault(stored_spec(run.case.recipe.get("of", "")), []).append(outcome)
    lacking = [transform for transform in _rounding_transforms(runs[1]) if transform not in noises]
    if lacking:
        return _ask_for_noise(runs, lacking, narrowed)
    return _weigh(runs, reference, other, noises, found)


def _ports(run: Run) -> tuple[Port, ...]:
    """Return the outputs of a run, which has further ones where it computes derivatives."""
    return result_ports(run.case.program, run.build.transform)


def _asks_for_symbols(runs: Sequence[Run]) -> bool:
    """Tell whether only the second build has symbolic sizes, which a compiler may refuse."""
    return runs[0].build.transform == STATIC != runs[1].build.transform and is_symbolic(runs[0].case.program.inputs)


def _fit(runs: Sequence[Run], narrowed: Mapping[str, str]) -> Fit:
    """Return the worst fit in the narrower types of the program and its transformed version."""
    if not narrowed:
        return "fits"
    cases = [
        _presented(runs[1]) if transform and not alters(transform) else runs[0].case
        for transform in _rounding_transforms(runs[1])
    ]
    return max((fit_of(case, narrowed) for case in cases), key=FITS.index)


def _is_exact(runs: Sequence[Run], mismatch: Mismatch) -> bool:
    """Tell whether an output must agree to the bit, in the program itself and in its transformed version."""
    port = _ports(runs[0])[mismatch.output]
    transform = runs[1].build.transform
    return not alters(transform) and port.exact and port.name in exact_beside(runs[0].case, transform)


def _finite_at(reference: Values, mismatch: Mismatch) -> bool:
    return finite(Values(((reference.results[mismatch.feed][mismatch.output],),)))


def _both(reference: Values, other: Values, mismatch: Mismatch) -> tuple[Tensor | None, Tensor | None]:
    """Return the output that differs, of the reference and of the other build."""
    return reference.results[mismatch.feed][mismatch.output], other.results[mismatch.feed][mismatch.output]


def is_noise(run: Run) -> bool:
    """Tell whether `run` is a Monte-Carlo run asked for by a judgement."""
    return "noise" in run.case.recipe


def is_further(run: Run, target: str) -> bool:
    """Tell whether a judgement of runs on `target` has asked for `run`."""
    return is_noise(run) or is_seconding(run, target)


def _bad_reference(runs: Sequence[Run], reference: Outcome, other: Outcome) -> Verdict:
    """Judge a reference build without values: fatal outcomes, and errors of a valid program, are bugs."""
    if isinstance(reference, Unsupported | Rejected | OutOfMemory):
        if isinstance(other, Crashed | TimedOut):
            return bad_build(runs[1], None, other)
        return Inconclusive(status_of(reference).replace("outofmemory", "out of memory"))
    if isinstance(reference, Defect):
        return Inconclusive(ADAPTER)
    if runs[0].case.recipe.get("unproven") and isinstance(reference, Raised):
        if isinstance(other, Crashed | TimedOut):
            return bad_build(runs[1], None, other)
        return Inconclusive("the inputs may not suit the model")
    return bad_build(runs[0], runs[1] if isinstance(other, Values) else None, reference)


def bad_build(faulty: Run, reference: Run | None, outcome: Outcome) -> Verdict:
    """Judge a build without values, of a program that is known or assumed to be valid."""
    match outcome:
        case Crashed(stage, signal):
            message = f"the process died of signal {signal}" if signal > 0 else f"the process exited with {-signal}"
            return Violated(Evidence("death", "status", f"{message} at {stage}", faulty, reference))
        case TimedOut(stage, seconds):
            return Violated(Evidence("hang", "status", f"no end of {stage} within {seconds:g} s", faulty, reference))
        case OutOfMemory(stage, message):
            return Violated(
                Evidence("memory", "status", f"memory without bound at {stage}: {message}", faulty, reference)
            )
        case Raised(stage, kind, message):
            text = f"{kind} at {stage}: {message}"
            return Violated(Evidence("exception", "status", text, faulty, reference))
        case Unsupported(stage, message):
            text = f"refused at {stage} by this build only: {message}"
            return Violated(Evidence("exception", "status", text, faulty, reference))
        case Rejected():
            return Inconclusive("lawfully refused by one build")
        case Defect():
            return Inconclusive(ADAPTER)
        case Values():
            return Holds()


def _violated(
    runs: Sequence[Run],
    mismatch: Mismatch,
    kind: Literal["missing", "dtype", "shape", "wrong"],
    rule: str,
    **details: Any,  # noqa: ANN401 - JSON values
) -> Violated:
    port = _ports(runs[0])[mismatch.output]
    message = f"output '{port.name}': {mismatch.detail}"
    more = {"feed": mismatch.feed, "output": mismatch.output, **details}
    return Violated(Evidence(kind, rule, message, runs[1], runs[0], port.name, more))


def undeclared(run: Run, mismatch: Mismatch) -> Violated:
    """Return the violation of a reference build whose output has another type than onnx infers."""
    port = _ports(run)[mismatch.output]
    kind: Literal["shape", "dtype"] = "dtype" if mismatch.kind == "dtype" else "shape"
    message = f"output '{port.name}': the {run.build.level} build gives {mismatch.detail}"
    details = {"feed": mismatch.feed, "output": mismatch.output}
    return Violated(Evidence(kind, "declared", message, run, None, port.name, details))


def _fixed(runs: Sequence[Run], reference: Values, other: Values, found: list[Mismatch]) -> Verdict:
    for mismatch in found:
        want, got = _both(reference, other, mismatch)
        if want is not None and got is not None:
            distance = largest_difference(want, got)
            if distance > FIXED_THRESHOLD:
                elements = compared(want, got, FIXED_THRESHOLD)
                measured = {"difference": distance, "allowed": FIXED_THRESHOLD, "elements": elements}
                return _violated(runs, mismatch, "wrong", "fixed", **measured)
    return Holds("below the fixed threshold")


def _surely_rounding(mismatch: Mismatch, reference: Values, other: Values, narrowed: Mapping[str, str]) -> bool:
    want, got = _both(reference, other, mismatch)
    if want is None or got is None:
        return False
    allowed = SURELY * THRESHOLD * ULPS
    return within_ulps(want, got, allowed, FLOOR * allowed, narrowed.get(want.dtype, ""))


def _ask_for_noise(runs: Sequence[Run], lacking: Sequence[Spec | None], narrowed: Mapping[str, str]) -> Verdict:
    """Ask for the missing noise runs: of the program under each transform, None for the program itself."""
    run, asked = runs[0], []
    try:
        for transform in lacking:
            of = spec_text(transform)
            if transform and alters(transform):
                noisy = replace(run.build, transform=with_noise(transform))
                twin = numbered(run.case, noise_seed(run.case))
                twin = replace(twin, recipe={**twin.recipe, "of": of})
                asked.append(replace(run, case=twin, build=noisy, purpose="judge"))
                continue
            case = _presented(runs[1]) if transform else run.case
            for twin in noise_twins(case, noise_seed(run.case), narrowed):
                asked.append(replace(run, case=replace(twin, recipe={**twin.recipe, "of": of}), purpose="judge"))
    except ModelError:
        return Inconclusive("no noise twin")
    return Needs(tuple(asked))


def _rounding_transforms(run: Run) -> tuple[Spec | None, ...]:
    """Return the transforms whose noise counts: None (the program itself), and that of `run` if it rounds elsewhere."""
    transform = run.build.transform
    if transform is not None and alters(transform):
        return noises_of(transform)  # the original program is not compared
    return (None,) if is_own(transform) or keeps_bits(transform) else (None, transform)


def _presented(run: Run) -> Case:
    """Return the case after the transform of `run`, with the outputs of the original case."""
    (share,) = present(run.case, run.build.transform)
    outputs = share.case.program.outputs[: len(run.case.program.outputs)]
    return replace(share.case, program=replace(share.case.program, outputs=outputs))


def _weigh(
    runs: Sequence[Run],
    reference: Values,
    other: Values,
    noises: Mapping[Spec | None, Sequence[Outcome]],
    found: list[Mismatch],
) -> Verdict:
    joint = [joined(noises[transform]) for transform in _rounding_transforms(runs[1])]
    for noise in joint:
        if not isinstance(noise, Values):
            return Inconclusive(f"noise twin {status_of(noise)}")
    parts = [noise for noise in joint if isinstance(noise, Values)]
    weighed = judge_noise(reference, other, *parts)
    if weighed is None:
        return Inconclusive("noise twin not comparable")
    if weighed.ratio <= THRESHOLD:
        return Holds("within rounding")
    mismatch = next(
        (m for m in found if (m.feed, m.output) == (weighed.feed, weighed.output)),
        found[0],
    )
    return _violated(
        runs,
        mismatch,
        "wrong",
        "monte-carlo",
        ratio=min(weighed.ratio, 1e300),
        difference=min(weighed.difference, 1e300),
        allowed=weighed.allowed,
        elements=_weighed_elements(reference, other, mismatch, parts),
    )


def _weighed_elements(
    reference: Values, other: Values, mismatch: Mismatch, noises: Sequence[Values]
) -> list[dict[str, Any]]:
    allowed = bounds(reference, noises, mismatch.feed, mismatch.output)
    return [] if allowed is None else compared(*_both(reference, other, mismatch), allowed)
