"""The majority vote: ballots that agree within rounding form a group, and the largest group wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from miscompile.base.dtypes import is_float
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Run
from miscompile.core.tensor import Array, Tensor
from miscompile.core.verdict import FindingKind
from miscompile.oracles.compare import contradiction, difference, mismatches
from miscompile.oracles.elements import compared
from miscompile.oracles.montecarlo import THRESHOLD, spreads

REFERENCE = "reference"
"""onnx's reference implementation as a target."""

LEEWAY = {"float64": 1e-7, "float32": 1e-3, "float16": 1e-1, "bfloat16": 2e-1}
"""Allowed difference of two implementations relative to the element, or to a tenth of the output's largest one if that
is more. Noise between the operators does not measure what an algorithm inside of one loses: a normalisation as
`scale * x + shift` loses most digits where all elements are equal. The body that ONNX gives for Gelu has constants of
float32 for float64 as well, which move results by 5e-8."""

Scales = Mapping[tuple[int, int], Array]
"""Allowed difference of each element, by feed and output; an output without an entry must be equal."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """A run and the values that it votes for."""

    run: Run
    values: Values


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two ballots that rounding does not explain, in the terms of `Evidence`."""

    kind: FindingKind
    rule: str
    message: str
    output: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MajorityVote:
    """Ballots in groups that agree. `scales` is None when the effect of rounding is unknown."""

    all: tuple[tuple[Ballot, ...], ...]
    scales: Scales | None
    exact: bool

    @property
    def right(self) -> tuple[Ballot, ...] | None:
        """The group with the most implementations, if it has enough and more than any other; else None.

        Two are enough if onnx's reference implementation is one of them, otherwise three: small runtimes ignore the
        same attributes, and then agree on the results of another program.
        """
        ranked = sorted(self.all, key=lambda group: -len(_targets(group)))
        targets = _targets(ranked[0])
        enough = 2 if REFERENCE in targets else 3
        if len(targets) < enough or (len(ranked) > 1 and len(_targets(ranked[1])) == len(targets)):
            return None
        return ranked[0]

    @property
    def outside(self) -> list[Ballot]:
        """The ballots of all other groups, optimised builds first."""
        others = [ballot for group in self.all if group is not self.right for ballot in group]
        return sorted(others, key=lambda ballot: ballot.run.build.level == "off")

    def difference(self, right: Ballot, wrong: Ballot) -> Difference:
        """Return the difference of the ballot `wrong` from the ballot `right`."""
        found = _difference(right, wrong, self.scales, self.exact)
        assert found is not None, "ballots of two groups differ"
        return found


def count_votes(ballots: Sequence[Ballot], noise: Outcome | None, *, exact: bool) -> MajorityVote:
    """Group `ballots`; each joins the first group of which it agrees with some member.

    `noise` is the outcome of a Monte-Carlo run. With `exact`, outputs that promise the same bits must have them.
    """
    feeds = len(ballots[0].values.results)
    scales = spreads(noise, feeds) if isinstance(noise, Values) else None
    groups: list[list[Ballot]] = []
    for ballot in ballots:
        home = next((c for c in groups if any(_difference(one, ballot, scales, exact) is None for one in c)), None)
        if home is None:
            groups.append([ballot])
        else:
            home.append(ballot)
    return MajorityVote(tuple(map(tuple, groups)), scales, exact)


def _targets(group: Sequence[Ballot]) -> set[str]:
    return {ballot.run.target for ballot in group}


def _difference(one: Ballot, other: Ballot, scales: Scales | None, exact: bool) -> Difference | None:
    ports = one.run.case.program.outputs
    for found in mismatches(ports, one.values, other.values):
        want, got = one.values.results[found.feed][found.output], other.values.results[found.feed][found.output]
        port, place = ports[found.output], {"feed": found.feed, "output": found.output}
        message = f"output '{port.name}': {found.detail}"
        if found.kind != "wrong" or want is None or got is None:
            return Difference(found.kind, "structure", message, port.name, place)
        if port.exact and exact:
            return Difference("wrong", "exact", message, port.name, {**place, "elements": compared(want, got)})
        allowed = None if scales is None else scales.get((found.feed, found.output))
        telling = _telling(want, got, allowed)
        if telling is not None and allowed is not None:
            telling = {**telling, "elements": compared(want, got, allowed)}
            return Difference("wrong", "monte-carlo", message, port.name, {**place, **telling})
    if contradiction(ports, one.values) is None and (breach := contradiction(ports, other.values)) is not None:
        place = {"feed": breach.feed, "output": breach.output}
        name = ports[breach.output].name
        kind: FindingKind = "dtype" if breach.kind == "dtype" else "shape"
        return Difference(kind, "structure", f"output '{name}': {breach.detail}", name, place)
    return None


def _leeway(want: Tensor) -> Array:
    """Return what the algorithm of an operator may lose of each element."""
    size = np.abs(want.numbers()).astype(np.float64)
    size = np.where(np.isfinite(size), size, 0.0)
    return np.asarray(LEEWAY.get(want.dtype, 0.0) * np.maximum(size, 0.1 * size.max(initial=0.0)))


def _telling(want: Tensor, got: Tensor, allowed: Array | None) -> dict[str, Any] | None:
    """Return the difference and the allowed difference of the worst element; None when rounding may explain both."""
    gap = difference(want, got)
    if allowed is None:
        return None  # the effect of rounding is unknown here
    if allowed.shape != gap.shape:
        return None
    allowed = np.maximum(allowed, _leeway(want))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(gap == 0, 0.0, gap / np.where(allowed == 0, np.finfo(np.float64).tiny, allowed))
    worst = int(np.argmax(ratio)) if ratio.size else 0
    if not ratio.size or ratio.flat[worst] <= 1.0:
        return None
    if is_float(want.dtype) and not np.isfinite(gap.flat[worst]):
        return {"ratio": 1e300, "difference": 1e300, "allowed": float(allowed.flat[worst])}
    return {
        "ratio": min(float(ratio.flat[worst]) * THRESHOLD, 1e300),
        "difference": float(gap.flat[worst]),
        "allowed": float(allowed.flat[worst]),
    }
