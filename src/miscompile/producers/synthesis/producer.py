"""Cases made by synthesis: optimisation patterns inside seeds, repeatedly for high-order combinations."""

import random
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import RejectedDraft, StoreError, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.verdict import Holds, Verdict
from miscompile.graph.emit import to_program
from miscompile.ops.seed import Seed
from miscompile.ops.spec import OperatorLimits
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import noop_motifs
from miscompile.producers.finish import AS_BUILT, Finisher, next_case, variants
from miscompile.producers.kinds import ProducerContext, ProducerKind
from miscompile.producers.motifs.plant import NONE, Mutations
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.strict import Strict
from miscompile.producers.synthesis.choice import Chooser
from miscompile.producers.synthesis.corpus import Corpus, Kept
from miscompile.producers.synthesis.host import Host, new_scope, prepared, same_meaning, seed_of, takes
from miscompile.producers.synthesis.options import OatestOptions, patterns_for
from miscompile.producers.synthesis.pool import PooledSeed, SeedPool
from miscompile.producers.synthesis.splice import Spliced, splice
from miscompile.transforms.functions.transform import wrapped

_FRESH, _GROWING = 0.08, 0.3
"""Probability of generating a new seed although the pool has some, and while it has few."""
_FEW, _FIRST = 60, 8
"""Pool size up to which seeds count as few, and the size from which seeds are reused."""
_VARIANT_INNER = 0.25
_VARIANT_FLIP = 0.25
_REMEMBERED = 64
"""Greatest number of cases with outstanding outcomes."""
_UNOBSERVED = 0.02
"""Share of the clean results that become seeds although their passes were not observed."""


@dataclass(frozen=True, slots=True)
class _Offspring:
    """A case as a future seed: its graph and outputs, and the seed and pattern that it came from."""

    scope: Scope
    outputs: tuple[str, ...]
    parent: PooledSeed
    pattern: str


class Synthesised:
    """Producer of cases with patterns inside seeds. `targets` are the names of the compilers under test.

    `functions`: cases may contain model-local functions. The pool starts with the seeds in `corpus` and appends those
    that it admits. Raises UsageError when there is no pattern to use.
    """

    def __init__(
        self,
        options: OatestOptions,
        support: Support,
        patterns: Sequence[Pattern],
        targets: Collection[str],
        seeds: Sequence[Seed] = (),
        *,
        functions: bool = True,
        corpus: Corpus | None = None,
    ) -> None:
        patterns = [
            one for one in patterns if _admitted(one, options) and any(takes(one, each) for each in options.opsets)
        ]
        if not patterns:
            raise UsageError("there is no pattern to put into seeds; allow more with --ops, --dtypes")
        self.options, self.support, self.functions = options, support, functions
        self.spec = print_spec("oatest", options)
        self.chooser = Chooser(list(patterns), targets, options.steer)
        self._patterns = patterns
        self._opsets: dict[int, tuple[int, ...]] = {}
        """The opsets of each of `_patterns`, by identity, as far as they were asked for."""
        self.pool = SeedPool(options.pool)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, zero_size=0.0)
        self._strict = Strict(_seed_options(options), support)
        self._given = [*seeds, *_contexts(options, patterns)]
        self._waiting: deque[Case] = deque()
        self._offspring: dict[int, _Offspring] = {}
        self._number = 0
        self._corpus = corpus
        if corpus is not None and options.high_order:
            self._recall(corpus)

    def propose(self, rng: random.Random) -> Case:
        """Return a new case. A rejected draft is drawn again from the same stream."""
        advice = "no case comes about from the patterns under these options"
        return next_case(self._waiting, lambda: self._draft(rng), advice)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Add a clean result to the pool if the set of passes that changed it is new."""
        offspring = self._offspring.pop(case.recipe.get("synthesis", -1), None)
        seen = [frozenset(one.observations.passes) for one in outcomes if one.observations.passes]
        passes = frozenset().union(*seen)
        fresh = self.pool.observe(passes) if seen else False
        clean = isinstance(verdict, Holds) and all(isinstance(outcome, Values) for outcome in outcomes)
        if offspring is None or not clean or not self.options.high_order:
            return
        if fresh or (not seen and case.recipe["chance"] < _UNOBSERVED):
            offspring.parent.idle = 0
            self._admit(offspring, passes)

    def _admit(self, offspring: _Offspring, passes: frozenset[str]) -> None:
        host = offspring.parent.host
        names = (*host.patterns, offspring.pattern)
        scope = offspring.scope
        made = seed_of(scope, offspring.outputs, f"{host.seed.source} + {offspring.pattern}")
        seed = replace(made, origin=host.seed.origin)
        with suppress(RejectedDraft):
            self.pool.put(prepared(seed, host.opset, self.support, self._limits, names, scope.operands), passes)
            self._keep(Kept(seed, passes, names))

    def _keep(self, kept: Kept) -> None:
        """Write a seed into the corpus. If that fails, the campaign continues without a corpus."""
        if self._corpus is None or not kept.passes:
            return
        try:
            self._corpus.add(kept, self._number)
        except StoreError as error:
            print(f"seeds are no longer kept: {error}", file=sys.stderr)
            self._corpus = None

    def _recall(self, corpus: Corpus) -> None:
        """Add the seeds of a corpus to the pool, and record the combinations of their passes."""
        for kept in corpus.load(self.options.pool):
            self.pool.observe(kept.passes)
            with suppress(RejectedDraft):
                host = prepared(kept.seed, kept.seed.opset, self.support, self._limits, kept.patterns)
                self.pool.put(host, kept.passes)

    def _draft(self, rng: random.Random) -> Iterator[Case]:
        """Yield the programs of one synthesis: as made, then with other outputs, constants and inputs."""
        options = self.options
        pattern = self.chooser.draw(rng, self.pool.fired)
        opsets = self._opsets_of(pattern)
        entry = self._entry(rng, self.chooser.intended(pattern) if options.steer else (), opsets)
        scope = self._scope(rng, entry.host.opset)
        mutations = Mutations() if rng.random() < options.mutations else NONE
        try:
            spliced = splice(scope, entry.host, pattern, mutations, noop_motifs() if mutations is not NONE else ())
        except RejectedDraft:
            self.chooser.failed(pattern)
            raise
        self.chooser.placed(pattern)
        recipe = self._recipe(rng, entry.host, pattern, spliced)
        finisher = Finisher(scope)
        case = finisher.case(spliced.outputs, options.feeds, recipe)
        self._remember(recipe["synthesis"], scope, entry, pattern, spliced)
        yield self._called(case, finisher, spliced, rng) if self._calls(rng) else case
        recipe = {**recipe, "synthesis": -1}
        yield from variants(finisher, options.feeds, recipe, options.variants, inner=_VARIANT_INNER, flip=_VARIANT_FLIP)

    def _opsets_of(self, pattern: Pattern) -> tuple[int, ...]:
        """Return the opsets that have the operators of a pattern, which are looked up once."""
        known = self._opsets.get(id(pattern))
        if known is None:
            known = self._opsets[id(pattern)] = tuple(each for each in self.options.opsets if takes(pattern, each))
        return known

    def _recipe(self, rng: random.Random, host: Host, pattern: Pattern, spliced: Spliced) -> dict[str, Any]:
        """Return the recipe of a case; `observe` in it requests the passes that change the program."""
        self._number += 1
        origin = {} if host.seed.origin is None else {"from": host.seed.origin.as_json()}
        return {
            **origin, "producer": self.spec, "opset": host.opset, "variant": 0, "seed graph": host.seed.source,
            "motifs": [*host.patterns, pattern.name], "wakes": sorted(self.chooser.intended(pattern)),
            "strategy": spliced.placed.strategy, "point": spliced.point, "bridges": spliced.bridges,
            "inner in": spliced.inner_in, "inner out": spliced.inner_out,
            "observe": rng.random() < self.options.observe, "chance": rng.random(), "synthesis": self._number,
        }  # fmt: skip

    def _remember(self, number: int, scope: Scope, entry: PooledSeed, pattern: Pattern, spliced: Spliced) -> None:
        if not self.options.high_order or len(scope.nodes) > self.options.most:
            return
        self._offspring[number] = _Offspring(scope, spliced.outputs, entry, pattern.name)
        if len(self._offspring) > _REMEMBERED:
            del self._offspring[next(iter(self._offspring))]

    def _calls(self, rng: random.Random) -> bool:
        return self.functions and rng.random() < self.options.calls

    def _called(self, case: Case, finisher: Finisher, spliced: Spliced, rng: random.Random) -> Case:
        """Move the pattern into a function that is called; return the case unchanged if that is impossible."""
        own = [node.outputs[0] for node in finisher.scope.nodes[spliced.first : spliced.last]]
        outputs = [port.name for port in case.program.outputs]
        model = finisher.model(outputs, AS_BUILT)
        places = frozenset(place for place, node in enumerate(model.graph.nodes) if node.outputs[0] in set(own))
        try:
            changed = wrapped(model, places, rng)
        except RejectedDraft:
            return case
        program = to_program(changed)
        return replace(
            case,
            program=replace(program, inputs=case.program.inputs, outputs=case.program.outputs),
            recipe={**case.recipe, "called": True},
        )

    def _scope(self, rng: random.Random, opset: int) -> Scope:
        options = self.options
        style = Style(rng.random() < options.integral, rng.random() < options.full)
        return new_scope(rng, opset, self.support, self._limits, style)

    def _entry(self, rng: random.Random, wanted: Collection[str], opsets: tuple[int, ...]) -> PooledSeed:
        """Return a seed of one of the pattern's `opsets`: from the pool, or a new one that is added to it."""
        if self.options.seeds == "none":
            return PooledSeed(self._alone(rng, opsets))
        pool = self.pool
        count = len(pool.entries)
        if count < _FIRST or rng.random() < (_GROWING if count < _FEW else _FRESH):
            return pool.put(self._new(rng, opsets))
        return pool.draw(rng, wanted, opsets) or pool.put(self._new(rng, opsets))

    def _alone(self, rng: random.Random, opsets: tuple[int, ...]) -> Host:
        """Return a seed of one node, because a pattern needs a value to read."""
        options = replace(self._strict.options, nodes=1, spread=0.0, opsets=opsets)
        return self._host(*Strict(options, self.support).grow(rng))

    def _new(self, rng: random.Random, opsets: tuple[int, ...]) -> Host:
        if self._given and (self.options.seeds == "patterns" or rng.random() < 0.5):
            seed = self._given[int(rng.random() * len(self._given))]
            found = [seed.opset] if seed.opset in opsets else []
            found += [opset for opset in sorted(opsets, reverse=True) if same_meaning(seed, opset)][:1]
            if not found:
                raise RejectedDraft("the seed has operators of another opset")
            return prepared(seed, found[0], self.support, self._limits)
        return self._host(*self._strict.grow(rng, opsets))

    def _host(self, scope: Scope, outputs: Sequence[str], recipe: Mapping[str, Any]) -> Host:
        seed = seed_of(scope, outputs, "generated")
        return prepared(seed, scope.opset, self.support, self._limits, built=scope.operands)


def _admitted(pattern: Pattern, options: OatestOptions) -> bool:
    """Tell whether a pattern uses only the selected operators and dtypes, as far as it declares them."""
    if options.ops and not set(pattern.operators) <= set(options.ops):
        return False
    return not options.dtypes or pattern.motif is None or bool(set(pattern.motif.dtypes) & set(options.dtypes))


def _contexts(options: OatestOptions, patterns: Sequence[Pattern]) -> list[Seed]:
    """Return the patterns as seeds if the options select these."""
    return [one.seed for one in patterns if one.seed is not None] if options.seeds == "patterns" else []


def _seed_options(options: OatestOptions) -> GeneratorOptions:
    """Return the options of the seeds: no motifs, because synthesis adds patterns later."""
    return GeneratorOptions(
        nodes=options.nodes, ops=options.ops, dtypes=options.dtypes, opsets=options.opsets, max_rank=options.max_rank,
        max_dim=options.max_dim, max_elements=options.max_elements, integral=options.integral, full=options.full,
        motifs=0.0, noops=0.05, control=options.control, containers=0.0, spread=0.05,
        large=0.0,
    )  # fmt: skip


def _make(options: OatestOptions, context: ProducerContext) -> Synthesised:
    return Synthesised(
        options,
        context.support,
        patterns_for(options),
        context.targets,
        context.seeds,
        functions=context.functions,
        corpus=context.corpus,
    )


OATEST = ProducerKind("oatest", OatestOptions, _make, patterns_for, brings_patterns=True)
"""The kind `oatest`."""
