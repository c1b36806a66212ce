"""Names of the rules and stages of tinygrad that can be switched off, as of release 0.14.0; 0.13 has most
of them, and older releases fewer."""

STAGES = ("hand_coded_optimizations", "memory_coalescing", "memory_plan_rewrite")
"""Functions of tinygrad (`stages.py`)."""

MATCHERS = (
    "tinygrad.uop.symbolic.pm_data_invalid",
    "tinygrad.uop.movement.mop_cleanup",
    "tinygrad.uop.symbolic.symbolic_simple",
    "tinygrad.uop.symbolic.commutative",
    "tinygrad.uop.divandmod.div_and_mod_symbolic",
    "tinygrad.uop.symbolic.symbolic",
    "tinygrad.uop.symbolic.pm_move_where_on_load",
    "tinygrad.uop.symbolic.pm_simplify_valid",
    "tinygrad.uop.symbolic.pm_clean_up_group_sink",
    "tinygrad.uop.symbolic.sym",
    "tinygrad.codegen.simplify.pm_simplify_ranges",
    "tinygrad.codegen.simplify.pm_split_ranges",
    "tinygrad.codegen.simplify.pm_reduce_unparented",
    "tinygrad.codegen.simplify.pm_reduce_collapse",
    "tinygrad.codegen.simplify.pm_reduce_load_collapse",
    "tinygrad.codegen.simplify.pm_reduce_simplify",
    "tinygrad.codegen.simplify.pm_load_collapse",
    "tinygrad.codegen.late.coalesce.indexing_simplify",
    "tinygrad.schedule.rangeify.pm_mops",
    "tinygrad.schedule.rangeify.pm_const_buffer_folding",
    "tinygrad.schedule.rangeify.pm_remove_bufferize",
    "tinygrad.schedule.rangeify.earliest_rewrites",
)
"""The matchers with optimising rules. A rule belongs to the first matcher that has it; the rules of the first one
are required."""

_PATTERNS = {
    "mop_cleanup": """
        PERMUTE(PERMUTE) PERMUTE STACK(INDEX(src.const)) INDEX(INDEX(buf.idx1_arg))
    """,
    "symbolic_simple": """
        SHL_or_SHR(x.0) FLOORDIV(x.x) FLOORDIV(x.1) FLOORDIV(x.-1) XOR(XOR(x.y).y) FLOORMOD(FLOORMOD(_.y).y) ADD
        AND(x.c) OR(x.c) CMPNE(x.False) Idempotent(x.x) CMPNE(CMPNE(x.1).1) WHERE(x.True.False) WHERE(x.False.True)
        CMPNE(CAST(x).c) TRUNC(x) CMPLT(x.x) FLOORMOD(x.x) XOR(x.x) AND(x.0) SHR(AND(x.mask).k)
        FLOORDIV(AND(x.mask).c) CMPNE(x.x) Ternary(CONST_or_STACK.CONST_or_STACK.CONST_or_STACK) MUL(x.y) ADD(x.y)
        MAX(x.y) MUL(0.RECIPROCAL(0)) MUL(MUL(x.0).RECIPROCAL(0)) MUL(x.RECIPROCAL(x)) MUL(MUL(x.x2).RECIPROCAL(x2))
        MUL(x.0) BITCAST_or_CAST BITCAST(c) CAST(CAST(x)) BITCAST(BITCAST(x)) CAST(x) POW(x.c) POW(c.x)
        CAST(OR(SHL(_.32).CAST(y))) SHR(OR(SHL(CAST(x).32).CAST(_)).32) WHERE(_.val.val) WHERE(a.WHERE(b.c.d).d)
        WHERE(a.c.WHERE(b.c.d))
    """,
    "commutative": """
        Commutative
    """,
    "div_and_mod_symbolic": """
        FLOORDIV(ADD(FLOORDIV(x.c).a).d) FLOORDIV_or_FLOORMOD(ADD(x.c).d) FLOORDIV_or_FLOORMOD
    """,
    "symbolic": """
        OR(x.CMPNE(x.1)) ADD(MUL(x.c0).MUL(x.c1)) ADD(ADD(y.MUL(x.c0)).MUL(x.c1)) ADD(x.MUL(x.c))
        ADD(ADD(y.x).MUL(x.c)) ADD(ADD(y.MUL(x.c)).x) ADD(x.x) ADD(ADD(y.x).x)
        MUL(MUL(x.RECIPROCAL(x2)).RECIPROCAL(x3)) MUL(-1.ADD(x.c)) MUL(y.ADD(x.c)) WHERE(CMPNE(cond.1).t.f)
        WHERE(cond.t.f) Binary(WHERE(c.t.f).WHERE(c.tt.ff)) ADD(ADD(y.WHERE(c.t.f)).WHERE(c.tt.ff))
        ADD(WHERE(c.t.0).WHERE(c.0.f)) WHERE(CMPLT(a.b).b.c) WHERE(CMPLT(a.b).c.a) MAX(x.y) ADD(ADD(x.c1).c2)
        MAX(MAX(x.c1).c2) OR(OR(x.c1).c2) AND(AND(x.c1).c2) FLOORDIV(FLOORDIV(x.c1).c2) CMPLT(ADD(c0.x).c1)
        CMPLT(MUL(c0.x).c1) CMPLT(FLOORDIV(x.d).c) ADD(ADD(x.c1).y) MUL(MUL(x.c1).y) CMPLT(x.c)
        CMPLT(MUL(x.-1).MUL(y.-1)) CMPNE(CMPLT(x.1).1) FLOORDIV(RANGE(end).end) CAST(CAST(x)) CAST(CAST(x))#2
        Binary(x.y) CAST(ADD(x.c))
    """,
    "pm_move_where_on_load": """
        WHERE(cond.INDEX(buf.idx).0) WHERE(cond.0.INDEX(buf.idx))
    """,
    "pm_simplify_valid": """
        AND WHERE(cond.x.Invalid)
    """,
    "sym": """
        CAST(WHERE(s.a.b)) RECIPROCAL(MUL(x.x)) RECIPROCAL(MUL(MUL(x.x).x)) RECIPROCAL(MUL(x.c))
        MUL(x.RECIPROCAL(ADD(1.x))) MUL(x.MUL(RECIPROCAL(ADD(1.x)).y)) MUL(x.ADD(RECIPROCAL(ADD(1.x)).y))
        REDUCE(MUL(x.c)) REDUCE(MUL) MUL(-1.ADD(x.y)) MUL(ADD(x.y).c)
    """,
    "pm_simplify_ranges": """
        END_or_REDUCE SINK
    """,
    "pm_split_ranges": """
        FLOORMOD(RANGE.c)
    """,
    "pm_reduce_collapse": """
        CMPLT(ADD(x.y).c) CMPLT(MUL(x.y).c) REDUCE(WHERE(CMPLT(RANGE.upper).val.0).r) REDUCE(ADD(x.y))
        REDUCE(WHERE(AND(PARAM.y).c.0)) MUL(x.CAST(gate))
    """,
    "pm_reduce_load_collapse": """
        CMPNE(ADD(x.y).c) REDUCE(WHERE(CMPNE(idx.RANGE).0.expr).r)
    """,
    "pm_reduce_simplify": """
        REDUCE(u)
    """,
    "pm_load_collapse": """
        REDUCE(u._) CMPLT(ADD(x.y).c)
    """,
    "indexing_simplify": """
        INDEX(buf.WHERE(cond.x.Invalid)) INDEX(buf.WHERE(valid.idx_y._).WHERE(valid.idx_x._))
    """,
    "pm_const_buffer_folding": """
        STAGE STAGE(INDEX) STAGE(c) INDEX(c)
    """,
    "pm_remove_bufferize": """
        INDEX(STAGE(src))
    """,
    "earliest_rewrites": """
        REDUCE(x)
    """,
}
"""Patterns by matcher (`rules.py`), separated by blanks."""

RULES = tuple(f"{matcher}:{pattern}" for matcher, text in _PATTERNS.items() for pattern in text.split())

NEEDS = {"div_and_mod_symbolic:FLOORDIV_or_FLOORMOD": ("symbolic_simple:MUL(x.0)",)}
"""Rule -> rules that it depends on; without one of them it would divide by zero, so it is switched off with them."""


def widen(off: frozenset[str]) -> frozenset[str]:
    """Return `off` with the rules that depend on it."""
    return off | {rule for rule, needed in NEEDS.items() if not off.isdisjoint(needed)}
