"""The comparison of results that somebody else has computed: two sets of outputs of one program on one input.

It is the judgement of builds (`judge`) for results whose origin is unknown: which of both is right is not assumed, so
the effect of rounding is measured around the result of the program itself, run without noise beside the noisy runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import ml_dtypes
import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.core.case import Port
from miscompile.core.outcome import Outcome, Values, status_of
from miscompile.core.tensor import Array, Tensor, text_of
from miscompile.graph.foreign import to_foreign
from miscompile.oracles.compare import difference, mismatches
from miscompile.oracles.montecarlo import ROUNDS, bound_around

ComparisonVerdict = Literal["equal", "rounding", "wrong", "undecided"]
"""`equal`: the same values; `rounding`: they differ by no more than rounding explains; `wrong`: by more, or in
presence, type or shape; `undecided`: nothing can be said, and the comparison proves nothing."""

_WORST_FIRST: tuple[ComparisonVerdict, ...] = ("wrong", "undecided", "rounding", "equal")


@dataclass(frozen=True, slots=True, eq=False)
class OutputComparison:
    """The comparison of one output.

    `rule` is the one that decided: `structure` (presence, type, shape), `exact` (no rounding can reach this output),
    `monte-carlo` (rounding was measured), or empty where all elements are equal or nothing could be measured.

    The arrays have the shape of the output: `wrong` (bool) marks the elements that rounding does not explain;
    `difference` (float64) is |actual - expected|, infinite where only one is NaN; `allowed` (float64) is the difference
    that rounding explains, NaN where it is unknown, and `allowed_ulps` the same in units in the last place of the
    expected element. Where the outputs cannot be compared element by element, they are empty.
    """

    name: str
    verdict: ComparisonVerdict
    rule: Literal["", "structure", "exact", "monte-carlo"]
    why: str
    wrong: Array = field(default_factory=lambda: np.zeros(0, bool))
    difference: Array = field(default_factory=lambda: np.zeros(0))
    allowed: Array = field(default_factory=lambda: np.zeros(0))
    allowed_ulps: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """The comparison of two results of a program, with one part for each output, in the order of the program."""

    outputs: tuple[OutputComparison, ...]

    @property
    def verdict(self) -> ComparisonVerdict:
        """The worst verdict of an output; `equal` for a program without outputs."""
        found = {output.verdict for output in self.outputs}
        return next((verdict for verdict in _WORST_FIRST if verdict in found), "equal")

    @property
    def ok(self) -> bool:
        """Tell whether the values are equal, or differ by no more than rounding explains; False when undecided."""
        return self.verdict in ("equal", "rounding")

    @property
    def why(self) -> str:
        """One line for each output with the worst verdict, separated by newlines."""
        return "\n".join(f"{one.name}: {one.why}" for one in self.outputs if one.verdict == self.verdict)

    def __getitem__(self, name: str) -> OutputComparison:
        """Return the comparison of the output called `name`. Raises KeyError when there is none."""
        for output in self.outputs:
            if output.name == name:
                return output
        raise KeyError(name)


def differing(ports: Sequence[Port], expected: Values, actual: Values) -> bool:
    """Tell whether some output differs that need not be exact, so that only noise runs can judge it."""
    found = mismatches(ports, expected, actual)
    return any(one.kind == "wrong" and not ports[one.output].exact for one in found)


def judge_supplied(
    ports: Sequence[Port], expected: Values, actual: Values, noise: Outcome | str
) -> tuple[OutputComparison, ...]:
    """Judge `actual` against `expected`, the outputs of one feed.

    `noise` is the outcome of the case that `montecarlo.noisy` made of the program and that feed; a text is the reason
    why there is none.
    """
    with np.errstate(all="ignore"):  # NaN and infinities are ordinary elements here
        return tuple(_judged(ports, expected, actual, noise))


def _judged(
    ports: Sequence[Port], expected: Values, actual: Values, noise: Outcome | str
) -> Iterator[OutputComparison]:
    found = {one.output: one for one in mismatches(ports, expected, actual)}
    for place, port in enumerate(ports):
        want, got = expected.results[0][place], actual.results[0][place]
        mismatch = found.get(place)
        if want is None or got is None or (mismatch is not None and mismatch.kind != "wrong"):
            said = mismatch.detail if mismatch is not None else "missing on both sides"
            yield OutputComparison(port.name, "wrong" if mismatch else "undecided", "structure", said)
        elif mismatch is None:
            yield _equal(port, want)
        elif port.exact:
            yield _exact(port, want, got)
        elif isinstance(noise, Values):
            yield _weighed(port, want, got, [results[place] for results in noise.results[: 1 + ROUNDS]])
        else:
            why = noise if isinstance(noise, str) else f"the noise run ended as {status_of(noise)}"
            yield _undecided(port, want, got, why)


def _equal(port: Port, want: Tensor) -> OutputComparison:
    none = np.zeros(want.shape)
    unknown = none if port.exact else np.full(want.shape, np.nan)
    return OutputComparison(port.name, "equal", "", "all elements are equal", none.astype(bool), none, unknown, unknown)


def _exact(port: Port, want: Tensor, got: Tensor) -> OutputComparison:
    """Judge an output that every order of evaluation computes alike; where it is not finite nothing is promised."""
    open_ = ~np.isfinite(want.numbers()) if is_float(want.dtype) else np.zeros(want.shape, bool)
    return _compared(port, want, got, np.zeros(want.shape), open_, "the expected value is not finite there", "exact")


def _weighed(port: Port, want: Tensor, got: Tensor, runs: Sequence[Tensor | None]) -> OutputComparison:
    """Judge an output by the noisy runs of the program; the first of `runs` is the one without noise."""
    base, moved = runs[0], runs[1:]
    if base is None or base.shape != want.shape or base.dtype != want.dtype:
        return _undecided(port, want, got, "the program itself gives an output of another type")
    if any(one is None or one.shape != base.shape for one in moved):
        return _undecided(port, want, got, "rounding decides the shape of this output")
    noisy = [one for one in moved if one is not None]
    if base.array.dtype.kind in "Oc":
        open_ = np.logical_or.reduce([_gap(base, one) > 0 for one in noisy])
        return _compared(port, want, got, np.zeros(want.shape), open_, "rounding changes them")
    allowed = bound_around(base, noisy)
    if allowed is None:
        return _undecided(port, want, got, "rounding decides whether this output is finite")
    strange = [bool((_gap(base, one) > allowed).any()) for one in (want, got)]
    if all(strange) and not (_gap(want, got) > allowed).any():
        return _undecided(port, want, got, "neither result is what the program computes on these inputs")
    open_ = ~np.isfinite(base.numbers()) if is_float(base.dtype) else np.zeros(want.shape, bool)
    note = "; the expected values are not what the program computes, the actual ones are" if strange == [1, 0] else ""
    return _compared(port, want, got, allowed, open_, "the program gives no finite number there", note=note)


def _undecided(port: Port, want: Tensor, got: Tensor, reason: str) -> OutputComparison:
    return _compared(port, want, got, np.full(want.shape, np.nan), np.ones(want.shape, bool), reason)


def _compared(
    port: Port, want: Tensor, got: Tensor, allowed: Array, open_: Array, reason: str,
    rule: Literal["exact", "monte-carlo"] = "monte-carlo", note: str = "",
) -> OutputComparison:  # fmt: skip
    """Compare element by element; the elements `open_` cannot be judged, for `reason`."""
    gap = _gap(want, got)
    bound = np.where(open_, np.nan, allowed)
    wrong = (gap > bound) & ~open_
    ulps = bound / _units(want) if is_float(want.dtype) else bound
    arrays = (wrong, gap, bound, ulps)
    if wrong.any():
        return OutputComparison(port.name, "wrong", rule, _told(want, got, wrong, gap, bound, ulps) + note, *arrays)
    if ((gap > 0) & open_).any():
        count = int(((gap > 0) & open_).sum())
        return OutputComparison(port.name, "undecided", "", f"{count} of {gap.size} elements differ: {reason}", *arrays)
    count = int((gap > 0).sum())
    why = f"{count} of {gap.size} elements differ by no more than rounding explains"
    return OutputComparison(port.name, "rounding", rule, why, *arrays)


def _gap(want: Tensor, got: Tensor) -> Array:
    """Return the differences; 1 where texts or complex numbers differ, because only their equality is judged."""
    if want.array.dtype.kind == "O":
        pairs = zip(want.array.flat, got.array.flat, strict=True)
        return np.asarray([text_of(one) != text_of(other) for one, other in pairs], np.float64).reshape(want.shape)
    if want.array.dtype.kind == "c":
        same = (want.array == got.array) | (np.isnan(want.array) & np.isnan(got.array))
        return np.asarray(~same, np.float64)
    return difference(want, got)


def _told(want: Tensor, got: Tensor, wrong: Array, gap: Array, bound: Array, ulps: Array) -> str:
    """Return a phrase on the wrong elements, with the one that lies furthest outside."""
    excess = np.where(wrong, gap / np.where(bound == 0, np.finfo(np.float64).tiny, bound), -1.0)
    place = np.unravel_index(int(np.argmax(excess)), want.shape)
    one, other = (value.array if value.dtype == "string" else value.numbers() for value in (want, got))
    text = f"{int(wrong.sum())} of {wrong.size} elements are wrong; at {[int(axis) for axis in place]} it is"
    text = f"{text} {other[place]}, expected {one[place]}"
    if not bound[place]:
        return f"{text}, and no rounding can reach it"
    unit = f" ({ulps[place]:.3g} units in the last place)" if is_float(want.dtype) else ""
    return f"{text}; they differ by {gap[place]:.3g}, and rounding explains {bound[place]:.3g}{unit}"


def _units(want: Tensor) -> Array:
    """Return the unit in the last place of each element; for those below the normal numbers, that of the smallest."""
    info = DTYPES[want.dtype]
    smallest = float(ml_dtypes.finfo(to_foreign(want).dtype).smallest_normal)
    size = np.abs(np.nan_to_num(want.numbers().astype(np.float64), nan=1.0, posinf=info.high, neginf=info.low))
    _, exponent = np.frexp(np.maximum(size, smallest))
    return np.asarray(np.ldexp(info.eps, exponent - 1))
