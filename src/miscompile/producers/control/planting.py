"""Planting a block: an If, Loop or Scan with generated bodies, on values of the scope."""

from collections.abc import Callable

from miscompile.base.errors import RejectedDraft
from miscompile.ops.spec import Operand
from miscompile.producers.control.body import BodyScope
from miscompile.producers.control.branches import branch
from miscompile.producers.control.forms import Blocks
from miscompile.producers.control.loops import loop
from miscompile.producers.control.scans import scan
from miscompile.producers.control.work import BodyFill
from miscompile.producers.scope import Scope

MOST_DEPTH = 2
"""Greatest nesting: blocks are planted in the main graph and in the bodies of those."""

_PLANTERS: dict[str, Callable[[Scope, Blocks, BodyFill], tuple[Operand, ...]]] = {
    "If": branch,
    "Loop": loop,
    "Scan": scan,
}


def plant_block(scope: Scope, blocks: Blocks, fill: BodyFill) -> str | None:
    """Plant a block and return its operator; None when no block could be planted, and the scope is unchanged.

    `fill(body, nodes)` adds about `nodes` operators to a body, nested blocks included.
    """
    around = scope.op if isinstance(scope, BodyScope) else ""
    operators = blocks.operators(around)
    if not operators or depth_of(scope) >= MOST_DEPTH:
        return None
    op = scope.rng.choice(operators)
    mark = scope.mark()
    try:
        _PLANTERS[op](scope, blocks, fill)
    except RejectedDraft:
        scope.rollback(mark)
        return None
    return op


def depth_of(scope: Scope) -> int:
    """Return the nesting depth of `scope`; 0 for the main graph."""
    return scope.depth if isinstance(scope, BodyScope) else 0
