"""Monte-Carlo arithmetic: how far may a correct result move when every float operation rounds differently?

The unoptimised program runs again with noise (`instrument`); the spread of its results is each element's
sensitivity. A difference between builds counts only if it lies well outside. The method also covers discontinuities,
because noise flips them.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.outcome import Outcome, Values
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.emit import emit
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.oracles.compare import difference
from miscompile.oracles.instrumentation import NOT_NARROWED, Noise, instrument

ROUNDS = 12
SPARSE = (1 / 16, 1 / 16, 15 / 16, 15 / 16)
"""The shares of elements that move up in some of the rounds. A discontinuity that flips a few elements of many moves a
mean or a normalisation of them further than one that flips half of them."""

FLOOR = 0.1
"""The least sensitivity of an element, as a share of its tensor's largest, because errors spread."""

FLIPPED = 0.01
"""Sensitivity as a share of a tensor's largest number above which a discontinuity was flipped, or rounding decides the
result. Which elements the rounds have flipped is chance then, so that all elements get the largest sensitivity."""
THRESHOLD = 2.0


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Largest ratio of difference to sensitivity over all outputs, and where it was found."""

    ratio: float
    feed: int
    output: int
    difference: float
    allowed: float


def noisy(case: Case, seed: int, narrowed: Mapping[str, str] = NOT_NARROWED) -> Case:
    """Return the noise-carrying twin of `case`: its first feed noise-free, then `ROUNDS` noisy feeds for each feed.

    The noise-free feeds come first, one for each feed of `case`. `narrowed` types move as the narrower ones do. Raises
    ModelError when the program cannot be read or typed.
    """
    model = read(case.program.payload)
    instrumented, noises = instrument(model, narrowed)
    rng = np.random.Generator(np.random.PCG64(seed))
    feeds: list[Feed] = [feed + tuple(noise.silent() for noise in noises) for feed in case.feeds]
    for feed in case.feeds:
        feeds += [feed + drawn for drawn in _draw(noises, rng)]
    ports = case.program.inputs + tuple(noise.port for noise in noises)
    program = Program("onnx", emit(instrumented), ports, case.program.outputs)
    return Case(program, tuple(feeds), {"noise": seed})


def numbered(case: Case, seed: int) -> Case:
    """Return `case` with a last input that tells an adapter which noise to compute with: 0 for none, 1 up, 2 down.

    For programs that the adapter itself changes, because only the adapter can instrument them. The order of the feeds
    is that of `noisy`.
    """
    rng = random.Random(seed)
    port = Port("miscompile_noise", "int64", ())
    feeds: list[Feed] = [(*feed, tensor(np.asarray(0), "int64")) for feed in case.feeds]
    for feed in case.feeds:
        drawn = [1, 2, *(rng.randrange(3, 1 << 31) for _ in range(ROUNDS - 2))]
        feeds += [(*feed, tensor(np.asarray(number), "int64")) for number in drawn]
    program = replace(case.program, inputs=(*case.program.inputs, port))
    return Case(program, tuple(feeds), {"noise": seed})


def noise_twins(case: Case, seed: int, narrowed: Mapping[str, str] = NOT_NARROWED) -> tuple[Case, ...]:
    """Return the noise-carrying twins of `case`: one, or where sizes are symbolic one for each feed.

    Noise needs an element for each element of every value, so that a program with symbolic sizes is first specialised
    to the feed's sizes, and its shape arithmetic is folded. Raises ModelError as `noisy` does.
    """
    if not is_symbolic(case.program.inputs):
        return (noisy(case, seed, narrowed),)
    return tuple(noisy(at_sizes(case, feed), seed, narrowed) for feed in case.feeds)


def at_sizes(case: Case, feed: Feed) -> Case:
    """Return `case` with the one feed, at that feed's sizes; structural operands are constants where they can be.

    Raises ModelError when the feed contradicts the program's signature.
    """
    program = case.program
    shapes = {port.name: value.shape for port, value in zip(program.inputs, feed, strict=True)}
    inputs = tuple(port._replace(shape=shapes[port.name]) for port in program.inputs)
    payload = emit(folded(specialised(read(program.payload), shapes)))
    return Case(Program(program.kind, payload, inputs, program.outputs), (feed,), case.recipe)


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Join the outcomes of a case's noise twins into one; without values of each, return the first outcome without.

    The noise-free feeds come first, then the noisy ones, as `noisy` has them.
    """
    if len(outcomes) == 1:
        return outcomes[0]
    silent: list[tuple[Tensor | None, ...]] = []
    noises: list[tuple[Tensor | None, ...]] = []
    for outcome in outcomes:
        if not isinstance(outcome, Values):
            return outcome
        silent.append(outcome.results[0])
        noises += outcome.results[1:]
    return Values((*silent, *noises))


def judge_noise(reference: Values, other: Values, *noises: Values) -> Sensitivity | None:
    """Return how far `other` lies from `reference` in units of sensitivity; None when noise makes a program fail.

    `noises` are the results of the cases that `noisy` made: of the reference's program, and of the other program if it
    differs. The sensitivities of both are added.
    """
    feeds = len(reference.results)
    worst = Sensitivity(0.0, 0, 0, 0.0, 0.0)
    for feed in range(feeds):
        for index, (want, got) in enumerate(zip(reference.results[feed], other.results[feed], strict=True)):
            if want is None or got is None or want.dtype == "string":
                continue
            found = _ratio(want, got, [_moved(noise, feeds, feed, index) for noise in noises])
            if found is None:
                return None
            if found[0] > worst.ratio:
                worst = Sensitivity(found[0], feed, index, found[1], found[2])
    return worst


def _moved(noise: Values, feeds: int, feed: int, index: int) -> list[Tensor | None]:
    """Return one output of one feed without noise, then with it."""
    rounds = noise.results[feeds + feed * ROUNDS : feeds + (feed + 1) * ROUNDS]
    return [noise.results[feed][index], *(results[index] for results in rounds)]


def spreads(noise: Values, feeds: int) -> dict[tuple[int, int], Array] | None:
    """Return how far two correct results may lie apart, for each element, by feed and output.

    `noise` are the results of the case that `noisy` made of one with so many feeds. None when noise makes the program
    fail: then its sensitivity is unbounded.
    """
    found: dict[tuple[int, int], Array] = {}
    for feed in range(feeds):
        rounds = noise.results[feeds + feed * ROUNDS : feeds + (feed + 1) * ROUNDS]
        for index, base in enumerate(noise.results[feed]):
            if base is None or base.dtype == "string":
                continue
            spread = _spread(base.numbers().astype(np.float64), base.shape, [results[index] for results in rounds])
            if spread is None:
                return None
            found[feed, index] = THRESHOLD * _floored(spread, base.numbers().astype(np.float64))
    return found


def bound_around(base: Tensor, moved: Sequence[Tensor]) -> Array | None:
    """Return the difference that rounding explains, for each element of an output that is `base` without noise.

    `moved` are the same output with noise. Elements of `base` that are not finite stay so in every run and get zero.
    None when noise decides whether some element is finite: then its sensitivity is unbounded.
    """
    spread = np.zeros(base.shape)
    for one in moved:
        np.maximum(spread, difference(base, one), out=spread)
    if not np.isfinite(spread).all():
        return None
    return THRESHOLD * _floored(spread, np.nan_to_num(base.numbers().astype(np.float64), posinf=0.0, neginf=0.0))


def _spread(centre: Array, shape: tuple[int, ...], moved: Iterable[Tensor | None]) -> Array | None:
    """Return the largest distance of each element from `centre`; None when some result cannot be compared."""
    spread = np.zeros_like(centre)
    for tensor_ in moved:
        if tensor_ is None or tensor_.shape != shape:
            return None
        numbers = tensor_.numbers().astype(np.float64)
        if not np.isfinite(numbers).all():
            return None
        np.maximum(spread, np.abs(numbers - centre), out=spread)
    return spread


def _ratio(want: Tensor, got: Tensor, moved: Sequence[list[Tensor | None]]) -> tuple[float, float, float] | None:
    """Return ratio, difference and allowed difference of the worst element; `moved` has the results of each program."""
    centre = want.numbers().astype(np.float64)
    gap = np.abs(centre - got.numbers().astype(np.float64))
    if not gap.size or not gap.max():
        return (0.0, 0.0, 0.0)
    scale = _scale(want, moved)
    if scale is None:
        return None
    if not np.isfinite(gap).all():
        return (float("inf"), float("inf"), float(scale.max()))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(gap == 0, 0.0, gap / scale)
    place = int(np.argmax(ratio))
    return (float(ratio.flat[place]), float(gap.flat[place]), float(THRESHOLD * scale.flat[place]))


def _scale(want: Tensor, moved: Sequence[list[Tensor | None]]) -> Array | None:
    """Return the sensitivity of each element; None when noise makes a program fail."""
    spread = _spread(want.numbers().astype(np.float64), want.shape, moved[0])
    for base, *rest in moved[1:]:  # around its own centre, whose distance from the reference is under judgement
        more = None if base is None else _spread(base.numbers().astype(np.float64), base.shape, [base, *rest])
        if spread is None or more is None or more.shape != spread.shape:
            return None
        spread = spread + more
    return None if spread is None else _floored(spread, want.numbers().astype(np.float64))


def _floored(spread: Array, centre: Array) -> Array:
    """Return the sensitivities with their least value, from how far the elements around `centre` have moved."""
    largest = np.max(spread, initial=0.0)
    magnitude = np.max(np.abs(centre), initial=0.0) + largest
    least = largest if largest > FLIPPED * magnitude else FLOOR * largest
    floored: Array = np.maximum(spread, least)
    return floored


def bounds(reference: Values, noises: Sequence[Values], feed: int, output: int) -> Array | None:
    """Return the difference from `reference` that rounding explains, for each element of an output of a feed.

    `noises` are those of `judge_noise`. None when noise makes a program fail, or the output has no numbers.
    """
    want = reference.results[feed][output]
    if want is None or want.dtype == "string":
        return None
    scale = _scale(want, [_moved(noise, len(reference.results), feed, output) for noise in noises])
    return None if scale is None else THRESHOLD * scale


def _draw(noises: list[Noise], rng: np.random.Generator) -> Iterator[Feed]:
    for sign in (1.0, -1.0):
        yield tuple(noise.uniform(sign) for noise in noises)
    for share in SPARSE:
        yield tuple(noise.sparse(rng, share) for noise in noises)
    rest = ROUNDS - 2 - len(SPARSE)
    drawn = [noise.random(rng, rest) for noise in noises]
    for place in range(rest):
        yield tuple(tensors[place] for tensors in drawn)


def noise_seed(case: Case) -> int:
    """Return the seed of a case's noise: a function of its bytes, so that judging stays pure."""
    return random.Random(case.program.digest).getrandbits(63)
