"""Cases made from seeds, such as slices of the user's models: unchanged, extended, or mutated.

Real graphs combine operators, shapes and weights in ways that random graphs rarely reach. Small changes of them find
bugs as well: one more operator, another dtype, an inner result as an output.
"""

import math
import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.graph.model import TensorType
from miscompile.ops.registry import version_of
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Operand, OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.finish import Finisher, leaves, next_case, variants
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.replay import AS_IT_IS, Changes, has_batch, replay
from miscompile.producers.scope import Scope
from miscompile.producers.strict import Strict

_PLAIN, _EXTENDED = 0.2, 0.65
"""Shares of unchanged slices, and of unchanged or extended ones; the others are mutated."""

_ALSO_EXTENDED = 0.4
_MOST_ADDED = 8
_OWN_OUTPUTS = 0.5
_VARIANT_INNER = 0.25
_VARIANT_FLIP = 0.25
_ROOM = 8192

_OTHERS: Mapping[str, tuple[str, ...]] = {
    "float32": ("float16", "float64", "bfloat16"),
    "float64": ("float32", "float16"),
    "float16": ("float32", "float64", "bfloat16"),
    "bfloat16": ("float32", "float16"),
}


class Seeded:
    """Producer of cases from seeds. It keeps a coverage of the operators that it adds, as strict generation does.

    `options` apply to the additions and do not restrict the seeds. A seed is used if the target supports it and it is
    defined for all elements in its intervals; `usable` counts them. Raises UsageError when there is none.
    """

    def __init__(self, seeds: Sequence[Seed], options: GeneratorOptions, support: Support) -> None:
        self.options, self.support = options, support
        self.spec = print_spec("seeded", options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, options.zero_size)
        self._waiting: deque[Case] = deque()
        self._usable = [(seed, opset) for seed in seeds for opset in [self._opset(seed)] if opset is not None]
        if not self._usable:
            raise UsageError(f"none of the {len(seeds)} slices can be used: the target takes none of them as it is")
        self._strict = Strict(options, support)

    @property
    def usable(self) -> int:
        """Number of seeds in use."""
        return len(self._usable)

    def propose(self, rng: random.Random) -> Case:
        """Return a new case. A rejected draft is drawn again from the same stream."""
        advice = "no case comes about from the slices under these options"
        return next_case(self._waiting, lambda: self._draft(rng), advice)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the coverages count graphs and not outcomes."""

    def _draft(self, rng: random.Random) -> Iterator[Case]:
        seed, opset = self._usable[int(rng.random() * len(self._usable))]
        chance = rng.random()
        kind = "plain" if chance < _PLAIN else "extended" if chance < _EXTENDED else "mutated"
        changes = _draw_changes(rng, seed) if kind == "mutated" else AS_IT_IS
        scope = self._scope(rng, seed, opset)
        known = replay(scope, seed, changes)
        outputs = [known[info.name].name for info in seed.graph.outputs]
        motifs: list[str] = []
        if kind == "extended" or (kind == "mutated" and rng.random() < _ALSO_EXTENDED):
            outputs, motifs = self._extended(scope, known, outputs)
        recipe: dict[str, Any] = {
            "producer": self.spec, "slice": seed.source, "kind": kind, "changes": changes.names(), "motifs": motifs,
            "opset": opset, "variant": 0,
        }  # fmt: skip
        if seed.origin is not None:
            recipe["from"] = seed.origin.as_json()
        finisher = Finisher(scope)
        yield finisher.case(_all_leaves(scope, outputs), self.options.feeds, recipe)
        count = 1 if kind == "plain" else self.options.variants
        yield from variants(finisher, self.options.feeds, recipe, count, inner=_VARIANT_INNER, flip=_VARIANT_FLIP)

    def _extended(
        self, scope: Scope, known: Mapping[str, Operand], outputs: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Extend the seed by strict generation; return the outputs and the planted motifs."""
        rng = scope.rng
        dtypes = tuple(sorted({operand.dtype for operand in known.values() if operand.value is None}))
        found, motifs = self._strict.extend(scope, 1 + int(rng.random() * _MOST_ADDED), dtypes)
        kept = [name for name in outputs if rng.random() < _OWN_OUTPUTS]
        return list(dict.fromkeys([*found, *kept])), motifs

    def _scope(self, rng: random.Random, seed: Seed, opset: int) -> Scope:
        options = self.options
        style = Style(rng.random() < options.integral, rng.random() < options.full)
        limits = replace(options, large=0.0).draw_limits(rng, self._limits)  # the seed has the size that it has
        return Scope(rng, opset, limits, style, self.support, max(_ROOM, 2 * _largest(seed)))

    def _opset(self, seed: Seed) -> int | None:
        """Return an opset in which the target supports the unchanged seed: its own or an equivalent one."""
        opsets = self.options.opsets
        own = [seed.opset] if seed.opset in opsets or min(opsets) <= seed.opset <= max(opsets) else []
        alike = [
            opset
            for opset in sorted(opsets, reverse=True)
            if all(version_of(op, opset) == version_of(op, seed.opset) for op in _all_operators(seed))
        ]
        for opset in dict.fromkeys([*own, *alike[:2]]):
            with suppress(RejectedDraft):
                replay(self._scope(random.Random(0), seed, opset), seed)
                return opset
        return None


def _all_operators(seed: Seed) -> set[str]:
    """Return the operators of a seed, those in bodies too."""
    found: set[str] = set()
    waiting = list(seed.graph.nodes)
    while waiting:
        node = waiting.pop()
        found.add(node.op)
        waiting += [inner for body in node.subgraphs() for inner in body.nodes]
    return found


def _largest(seed: Seed) -> int:
    """Return the number of elements of the largest value that is no constant."""
    kinds = [*seed.types.values(), *(info.type for info in seed.graph.inputs)]
    shapes = [kind.shape or () for kind in kinds if isinstance(kind, TensorType)]
    return max((math.prod(size for size in shape if isinstance(size, int)) for shape in shapes), default=0)


def _draw_changes(rng: random.Random, seed: Seed) -> Changes:
    """Draw one change, or sometimes two."""
    floats = sorted({info.type.dtype for info in seed.graph.inputs if isinstance(info.type, TensorType)} & set(_OTHERS))
    kinds = ["twice", "integral", "fresh", "setting"]
    kinds += ["dtype", "dtype"] if floats else []
    kinds += ["batch"] if has_batch(seed) else []
    chosen = {rng.choice(kinds), *([rng.choice(kinds)] if rng.random() < 0.3 else [])}
    return Changes(
        dtypes={floats[0]: rng.choice(_OTHERS[floats[0]])} if "dtype" in chosen else {},
        batch=rng.choice((1, 2, 3, 5)) if "batch" in chosen else None,
        twice=0.5 if "twice" in chosen else 0.0,
        integral="integral" in chosen,
        fresh="fresh" in chosen,
    )


def _all_leaves(scope: Scope, outputs: Sequence[str]) -> list[str]:
    """Return `outputs`, or every leaf if the changes removed all of them."""
    return list(dict.fromkeys(outputs)) or leaves(scope)


SEEDED = ProducerKind(
    "seeded",
    GeneratorOptions,
    lambda options, context: Seeded(context.seeds, options, context.support),
    needs_seeds=True,
)
"""The kind `seeded`."""
