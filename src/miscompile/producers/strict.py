"""Strict generation: valid graphs, operator by operator, motif by motif.

GENERATION of HIRFUZZ (Algorithm 1) with the three coverages as gate or as preference, and three additions: fusion
motifs in unusual settings, semantic no-ops next to each other and next to outputs, and intervals that exclude undefined
behaviour.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.ops.registry import dtypes_of, specs, version_of
from miscompile.ops.spec import OperatorLimits, OpSpec
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.patterns.language import Motif
from miscompile.patterns.shipped import fusion_motifs, noop_motifs
from miscompile.producers.control.forms import FEATURES, Blocks, blocks
from miscompile.producers.control.planting import MOST_DEPTH, depth_of, plant_block
from miscompile.producers.coverage import Coverage
from miscompile.producers.finish import Finisher, inner_results, leaves, next_case, variants
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.motifs.containers import plant_container, taken_blocks
from miscompile.producers.motifs.plant import Mutations, plant, plant_noop
from miscompile.producers.motifs.quantised.planting import NAME as QUANTISED
from miscompile.producers.motifs.quantised.planting import NEEDED, plant_chain
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import ROOM, Mark, Scope
from miscompile.producers.sites import ScopeSite, insert

_VARIANT_INNER = 0.2
_FEW_LARGE = 5
"""The most operators aimed at in a graph with large tensors."""
_VARIANT_FLIP = 0.3

_GATE_PATIENCE = 8
"""Refusals in a row after which the gate admits a node, so that a saturated campaign still makes graphs."""


@dataclass(frozen=True, slots=True)
class _Menu:
    """The operators, motifs and blocks that can be drawn under one opset."""

    pairs: tuple[tuple[str, str], ...]
    motifs: tuple[Motif, ...]
    noops: tuple[Motif, ...]
    dtypes: tuple[str, ...]
    blocks: Blocks
    quantised: bool
    """Whether quantised chains can be planted; they have operators and types of their own."""
    containers: tuple[tuple[str, str], ...]
    """Blocks of sequences and optionals, with their element types."""


class Strict:
    """Producer of random graphs. Its coverage grows with every case, so a case depends on those before."""

    def __init__(self, options: GeneratorOptions, support: Support) -> None:
        self.options = options
        self.support = support
        self.coverage = Coverage()
        self.mutations = Mutations(other_operator=0.0) if options.ops else Mutations()
        self.spec = print_spec("strict", options)
        self._bodies = not options.ops or not FEATURES.keys().isdisjoint(options.ops)
        self._menu = lru_cache(maxsize=None)(self._make_menu)
        self._large_menu = lru_cache(maxsize=None)(self._make_large_menu)
        self._waiting: deque[Case] = deque()
        self._limits = OperatorLimits(
            options.max_rank, options.max_dim, options.max_elements, options.zero_size, options.min_rank
        )
        if not any(self._menu(opset).pairs for opset in options.opsets):
            raise UsageError(
                "no operator is left to generate: the target takes none of those asked for (--ops, --dtypes)"
            )

    def propose(self, rng: random.Random) -> Case:
        """Return a new case. A rejected draft is drawn again from the same stream."""
        advice = "no graph comes about under these options; allow more with --ops, --dtypes, --max-rank"
        return next_case(self._waiting, lambda: self._draft(rng), advice)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the coverages count graphs and not outcomes."""

    def _draft(self, rng: random.Random) -> Iterator[Case]:
        """Yield the programs of a grown graph: as built, then with other outputs, constants and inputs."""
        options = self.options
        scope, outputs, recipe = self.grow(rng)
        finisher = Finisher(scope)
        yield finisher.case(outputs, options.feeds, recipe)
        yield from variants(finisher, options.feeds, recipe, options.variants, inner=_VARIANT_INNER, flip=_VARIANT_FLIP)

    def grow(
        self, rng: random.Random, opsets: tuple[int, ...] | None = None
    ) -> tuple[Scope, list[str], dict[str, Any]]:
        """Grow a graph of one of `opsets` (None: any); return it with its outputs and the recipe of its cases.

        Producers that make other cases of finished graphs call this. Raises RejectedDraft.
        """
        options = self.options
        opset = self._offered(options.draw_opset(rng, opsets), rng, opsets)
        style = Style(rng.random() < options.integral, rng.random() < options.full)
        limits = options.draw_limits(rng, self._limits)
        large = limits.least_elements > 0
        menu = self._large_menu(opset) if large else self._menu(opset)
        scope = Scope(rng, opset, limits, style, self.support, max(ROOM, 2 * limits.max_elements))
        planted: list[str] = []
        inner: list[str] = []
        self._grow(scope, menu, planted, inner, rng.randint(1, _FEW_LARGE) if large else options.draw_nodes(rng))
        outputs = self._outputs(scope, menu, inner)
        recipe = {"producer": self.spec, "opset": opset, "motifs": planted, "variant": 0}
        recipe |= {"large": True} if large else {}
        return scope, outputs, recipe

    def _offered(self, opset: int, rng: random.Random, opsets: tuple[int, ...] | None) -> int:
        """Return `opset`, or another one of `opsets` if the target takes no operator of it, as an old release may."""
        if self._menu(opset).pairs:
            return opset
        left = tuple(one for one in opsets or self.options.opsets if self._menu(one).pairs)
        if not left:
            raise RejectedDraft("the target takes no operator of these opsets")
        return self.options.draw_opset(rng, left)

    def extend(self, scope: Scope, nodes: int, dtypes: tuple[str, ...]) -> tuple[list[str], list[str]]:
        """Add up to `nodes` operators to the contents of `scope`; return the outputs and the motifs planted.

        The operators are of `dtypes`, if the target supports any; existing values are preferred to new inputs.
        """
        menu = self._menu(scope.opset, dtypes)
        if not menu.pairs:
            menu = self._menu(scope.opset)
        planted: list[str] = []
        inner: list[str] = []
        if menu.pairs:
            self._grow(scope, menu, planted, inner, len(scope.nodes) + nodes)
        return self._outputs(scope, menu, inner), planted

    def _grow(self, scope: Scope, menu: _Menu, planted: list[str], inner: list[str], nodes: int) -> None:
        """Grow `nodes` operators, or fewer when too many insertions fail; a block counts as one."""
        options, rng = self.options, scope.rng
        control = options.control if depth_of(scope) < MOST_DEPTH and self._bodies else 0.0
        tries = 0
        while len(scope.nodes) < nodes and tries < 8 * nodes:
            tries += 1
            chance = rng.random()
            if chance < control:
                self._block(scope, menu, planted)
            elif chance < control + options.motifs and menu.motifs:
                self._plant(scope, menu, planted, inner)
            elif chance < control + options.motifs + options.noops and menu.noops:
                self._noop(scope, menu)
            else:
                self._insert(scope, menu)

    def _block(self, scope: Scope, menu: _Menu, planted: list[str]) -> None:
        """Plant an If, Loop or Scan whose bodies grow as the graph does."""
        motifs: list[str] = []

        def fill(body: Scope, nodes: int) -> None:
            self._grow(body, menu, motifs, [], nodes)

        op = plant_block(scope, menu.blocks, fill)
        if op is not None:
            planted += [op, *motifs]

    def _plant(self, scope: Scope, menu: _Menu, planted: list[str], inner: list[str]) -> None:
        rng, options = scope.rng, self.options
        chance = rng.random()
        if chance < options.quantised and menu.quantised:
            name, result = QUANTISED, plant_chain(scope)
        elif chance < options.quantised + options.containers and menu.containers:
            name, dtype = rng.choice(menu.containers)
            result = plant_container(scope, name, dtype)
        else:
            motif = rng.choice(menu.motifs)
            name, result = motif.name, plant(scope, motif, self.mutations, menu.noops, dtypes=menu.dtypes)
        if result is not None:
            planted.append(name)
            inner += result.outputs

    def _noop(self, scope: Scope, menu: _Menu, onto: str | None = None) -> str | None:
        """Plant a no-op on a value (a late one if none is given); return its result."""
        names = [onto] if onto else [name for name, op in scope.producer.items() if op and op != "Constant"]
        if not names:
            return None
        place = max(int(scope.rng.random() * len(names)), int(scope.rng.random() * len(names)))
        result = plant_noop(scope, menu.noops, scope.operands[names[place]], self.mutations)
        return result.results[-1].name if result is not None and result.results else None

    def _insert(self, scope: Scope, menu: _Menu) -> None:
        """Insert one operator, if its sampler finds operands and the gate admits it."""
        rng = scope.rng
        for refused in range(_GATE_PATIENCE + 1):
            op, dtype = self.coverage.choose(rng, menu.pairs, looks=2 if self.options.guidance == "steer" else 1)
            mark = scope.mark()
            try:
                call, results = insert(scope, op, ScopeSite(scope, dtype))
            except RejectedDraft:
                self.coverage.refuse(op, dtype)
                scope.rollback(mark)
                return
            parents = [scope.producer[operand.name] for operand in call.inputs if operand is not None]
            if self._refuses(op, dtype, results[0].shape, parents, refused):
                scope.rollback(mark)
                continue
            self.coverage.add(op, dtype, results[0].shape, parents)
            return

    def _refuses(self, op: str, dtype: str, shape: tuple[int, ...], parents: list[str], refused: int) -> bool:
        if self.options.guidance != "gate" or refused >= _GATE_PATIENCE:
            return False
        return self.coverage.fresh(op, dtype, shape, parents) == 0

    def _outputs(self, scope: Scope, menu: _Menu, inner: list[str]) -> list[str]:
        """Every leaf is an output, some behind a last no-op; some inner values are outputs as well."""
        rng = scope.rng
        outputs = []
        for name in leaves(scope):
            if menu.noops and rng.random() < self.options.noops:
                mark: Mark = scope.mark()
                end = self._noop(scope, menu, name)
                if end is None:
                    scope.rollback(mark)
                elif rng.random() < 0.5:
                    outputs.append(name)
                outputs.append(end or name)
            else:
                outputs.append(name)
        outputs += [name for name in inner_results(scope) if rng.random() < self.options.inner_outputs]
        known = set(scope.producer)
        return list(dict.fromkeys(name for name in [*outputs, *inner] if name in known))

    def _make_large_menu(self, opset: int) -> _Menu:
        """Return the operators whose work grows with the elements of their operands, and nothing else.

        Of the others, some take time without end on tensors of many elements.
        """
        menu, known = self._menu(opset), specs()
        linear = tuple(pair for pair in menu.pairs if _is_linear(known[pair[0]]))
        return replace(menu, pairs=linear or menu.pairs, motifs=(), containers=(), quantised=False)

    def _make_menu(self, opset: int, among: tuple[str, ...] = PLAIN) -> _Menu:
        options = self.options
        dtypes = tuple(dtype for dtype in options.dtypes or PLAIN if dtype in among)
        pairs = tuple(
            (op, dtype)
            for op, spec in specs().items()
            for dtype in dtypes_of(op, opset)
            if dtype in dtypes
            and (not options.ops or op in options.ops)
            and self.support.offers(op, dtype, version_of(op, opset), spec.main)
        )
        ops = {op for op, _ in pairs}

        def serves(motif: Motif) -> bool:
            return set(motif.operators) <= ops and bool(set(motif.dtypes) & set(dtypes))

        motifs, noops = tuple(filter(serves, fusion_motifs())), tuple(filter(serves, noop_motifs()))
        chains = not options.ops and {*PLAIN} <= {*dtypes} and ops >= NEEDED
        containers = () if options.ops else taken_blocks(self.support, opset, dtypes)
        return _Menu(pairs, motifs, noops, dtypes, blocks(self.support, opset, dtypes), chains, containers)


def _is_linear(spec: OpSpec) -> bool:
    return spec.elementwise or spec.special is not None or spec.fusion in ("reduction", "out-elementwise-fusable")


STRICT = ProducerKind("strict", GeneratorOptions, lambda options, context: Strict(options, context.support))
"""The kind `strict`."""
