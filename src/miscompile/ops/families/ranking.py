"""Operators that rank the elements along an axis: TopK, ArgMax, ArgMin.

Sources: the operator pages of the ONNX documentation. Ties are defined: the lower index comes first, or, with
`select_last_index`, the higher one wins.
"""

from miscompile.base.dtypes import NUMBERS
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import has_axis, numbers_of
from miscompile.ops.spec import Call, Operand, OpSpec, Site
from miscompile.ops.structural import axis_of, draw_axis, kept, numbers, signed, vector


def _ranked(site: Site) -> tuple[Operand, int]:
    """Return an operand without empty axes, and one of its axes."""
    x = site.operand(fits=lambda shape: len(shape) > 0 and 0 not in shape)
    return x, draw_axis(site.rng, x.rank)


def _top_k(site: Site) -> Call:
    x, axis = _ranked(site)
    rng = site.rng
    count = rng.randint(1, x.shape[axis])
    written = None if axis == x.rank - 1 and rng.random() < 0.5 else signed(rng, axis, x.rank)
    order = rng.choice((None, 1, 0) if count == 1 else (None, 1))
    options = {"axis": written, "largest": rng.choice((None, 0, 1)), "sorted": order}
    return Call("TopK", (x, vector(site, (count,))), attributes(options), outputs=2)


def _top_k_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x = call.operand(0)
    return kept(x.facts), Bounds(0, x.shape[axis_of(call, x.rank, -1)] - 1, integral=True)


def _top_k_holds(call: Call) -> bool:
    """K known and within the axis; unsorted results come in any order, unless there is one of them."""
    x, count = call.operand(0), numbers(call, 1)
    if count is None or not 1 <= count[0] <= x.shape[axis_of(call, x.rank, -1)]:
        return False
    return call.integer("sorted", 1) == 1 or count[0] == 1


def _arg(op: str) -> OpSpec:
    def sample(site: Site) -> Call:
        x, axis = _ranked(site)
        rng = site.rng
        options = {
            "axis": None if axis == 0 and rng.random() < 0.5 else signed(rng, axis, x.rank),
            "keepdims": rng.choice((None, 0, 1)),
            "select_last_index": rng.choice((None, 0, 1)),
        }
        return Call(op, (x,), attributes(options))

    def bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
        x = call.operand(0)
        return (Bounds(0, x.shape[axis_of(call, x.rank)] - 1, integral=True),)

    def defined(call: Call) -> bool:
        x = call.operand(0)
        return x.rank > 0 and x.shape[axis_of(call, x.rank)] > 0

    return OpSpec(
        op,
        NUMBERS,
        sample,
        bounds,
        Exactness.INDEX,
        "ranking",
        defined,
        shapes=rules.ranked,
        fusion="reduction",
        well_formed=has_axis(0),
    )


def _page_top_k(call: Call) -> bool:
    count = numbers_of(call, 1)
    if call.operand(1).shape != (1,) or not has_axis(-1)(call):
        return False
    return count is None or 0 <= count[0] <= call.operand(0).shape[call.integer("axis", -1)]


SPECS = (
    OpSpec(
        "TopK",
        NUMBERS,
        _top_k,
        _top_k_bounds,
        Exactness.INDEX,
        "ranking",
        _top_k_holds,
        since=11,
        shapes=rules.top_k,
        well_formed=_page_top_k,
        structural={"shape": (1,)},
        traits=("holds-sizes",),
    ),
    _arg("ArgMax"),
    _arg("ArgMin"),
)
