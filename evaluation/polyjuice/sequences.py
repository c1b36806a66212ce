"""Do the simplest and the most complex program trigger other passes than two random ones?

POLYJUICE, section 5.4 and Table 4: for each graph the sequences of passes that a compiler executes on the two extremes
are compared, by longest common subsequence and by edit distance, beside those of two random extractions. A sequence has
the passes that changed the program, each where it did so first. Graphs count only when all four programs
were built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evaluation.polyjuice.distance import edit_distance, lcs_difference
from miscompile.base.rng import stream
from miscompile.base.specs import stored_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.pool import Pool
from miscompile.core.run import Build, Run
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, make_producer

PAPER = {"lcs": 112.98, "edit": 150.06}
"""How much larger the paper finds the differences between the extremes, in per cent (Table 4)."""

_RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class SequenceDifferences:
    """Differences of one kind, a number for each graph: between the extremes, and between two random programs."""

    extremes: tuple[int, ...]
    randoms: tuple[int, ...]

    def gain(self) -> tuple[float, float, float]:
        """Return how much larger the mean difference of the extremes is, in per cent, and a 95 % interval of it."""
        pairs = np.array([self.extremes, self.randoms], float)
        rng = np.random.Generator(np.random.PCG64(0))
        places = rng.integers(0, pairs.shape[1], (_RESAMPLES, pairs.shape[1]))
        drawn = pairs[:, places].mean(axis=2)
        gains = 100 * (drawn[0] / np.maximum(drawn[1], 1e-9) - 1)
        mean = 100 * (pairs[0].mean() / max(pairs[1].mean(), 1e-9) - 1)
        low, high = np.percentile(gains, (2.5, 97.5))
        return float(mean), float(low), float(high)


def sequences(
    case: Case, target: str, build: Build, seed: int, layers: int, pool: Pool
) -> list[tuple[str, ...]] | None:
    """Return the passes executed on the least, the most, and two random programs; None when one was not built."""
    options = f"layers={layers}, share=1.0, seed"
    forms = [f"egraph{{pick=least, {options}={seed}}}", f"egraph{{pick=most, {options}={seed}}}"]
    forms += [f"egraph{{pick=random, {options}={seed + turn}}}" for turn in (1, 2)]
    outcomes = pool.run([Run(case, target, replace(build, transform=stored_spec(form))) for form in forms])
    if not all(isinstance(outcome, Values) for outcome in outcomes):
        return None
    return [outcome.observations.passes for outcome in outcomes]


def compare(found: Sequence[Sequence[tuple[str, ...]]]) -> dict[str, SequenceDifferences]:
    """Return the differences of both kinds."""
    kinds = {"lcs": lcs_difference, "edit": edit_distance}
    return {
        name: SequenceDifferences(
            tuple(measure(least, most) for least, most, _, _ in found),
            tuple(measure(one, other) for _, _, one, other in found),
        )
        for name, measure in kinds.items()
    }


@dataclass(frozen=True, slots=True)
class SequenceSettings:
    """`graphs` graphs of about `nodes` operators, `layers` for the most complex one, names of passes that stay off."""

    graphs: int = 500
    nodes: int = 10
    layers: int = 2
    disabled: str = ""
    seed: int = 0


def measure(target: str, settings: SequenceSettings) -> dict[str, Any]:
    """Return the mean differences of both kinds on one target, how much larger the extremes' is, and graphs not built.

    Raises UsageError for a target that cannot run.
    """
    plan = Plan(target, seed=settings.seed, producers=(f"strict{{nodes={settings.nodes}, control=0, containers=0}}",))
    producer = make_producer(plan, probe_support(plan, target))
    build = Build("full", disabled=frozenset(filter(None, settings.disabled.split(","))), observe=True)
    found: list[list[tuple[str, ...]]] = []
    index = 0
    with make_pool(replace(plan, workers=1), 1) as pool:
        while len(found) < settings.graphs and index < 3 * settings.graphs:
            case = producer.propose(stream(settings.seed, "effectiveness", index))
            passes = sequences(case, target, build, index * 3, settings.layers, pool)
            index += 1
            if passes is not None:
                found.append(passes)
    result: dict[str, Any] = {"graphs": len(found), "skipped": index - len(found)}
    for kind, pairs in compare(found).items():
        gain, low, high = pairs.gain()
        means = {"extremes": float(np.mean(pairs.extremes)), "randoms": float(np.mean(pairs.randoms))}
        result[kind] = {**means, "gain": gain, "interval": (low, high)}
    return result


def table(figures: Mapping[str, Mapping[str, Any]], settings: SequenceSettings) -> str:
    """Return the figures of every target as lines, beside those of the paper."""
    lines = []
    for target, found in figures.items():
        lines.append(
            f"{target}: {found['graphs']} graphs of about {settings.nodes} operators, {found['skipped']} not built"
        )
        for kind, paper in PAPER.items():
            row = found[kind]
            low, high = row["interval"]
            lines.append(
                f"  {kind:5} extremes {row['extremes']:.2f}, random {row['randoms']:.2f}:"
                f" {row['gain']:+.0f} % (95 % interval {low:+.0f} to {high:+.0f}; the paper {paper:+.0f} %)"
            )
    return "\n".join(lines)
