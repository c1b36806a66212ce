"""Matrix products: MatMul, Gemm, Einsum, MatMulInteger, and Det.

Sources: the operator pages of the ONNX documentation.
"""

import math
import random

from miscompile.base.dtypes import FLOATS, INTEGERS, UNSIGNED, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.elementwise import narrow
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import broadcasts_to, lines, shape_of, stacks
from miscompile.ops.rounding import accumulated, dot, minus, rounded, span, times, widest
from miscompile.ops.shapes import draw_size, matrix_partner
from miscompile.ops.spec import Call, Operand, OpSpec, Shape, Site
from miscompile.ops.special import SUMS

_FAMILY = "linear"
_PRODUCTS = (*FLOATS, "int32", "int64", "uint32", "uint64")
_BYTES = ("int8", "uint8")


def _other(site: Site, shape: Shape, dtype: str | None = None, within: Span | None = None) -> Operand:
    """Return a further factor: a weight, or an existing value of that shape."""
    if site.rng.random() < 0.6:
        return site.weight(shape, dtype, within=within)
    return site.operand(dtype, shape=shape, within=within)


def _sample_matmul(site: Site) -> Call:
    left = site.operand(ranks=(1, 4))
    return Call("MatMul", (left, _other(site, matrix_partner(site, left.shape))))


def _bounds_matmul(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (dot(types[0].dtype, call.operand(0).shape[-1], call.facts(0), call.facts(1)),)


def _sample_gemm(site: Site) -> Call:
    """Draw a Gemm. Unsigned elements are small: alpha is a float, and the page leaves open where wraparound happens."""
    rng = site.rng
    within = (0.0, 200.0) if site.dtype in UNSIGNED else None
    left = site.operand(ranks=(2, 2), within=within)
    turned, flipped = rng.random() < 0.4, rng.random() < 0.4
    rows, inner = left.shape[::-1] if turned else left.shape
    columns = draw_size(rng, site.limits)
    inputs: list[Operand | None] = [
        left,
        _other(site, (columns, inner) if flipped else (inner, columns), within=within),
    ]
    if rng.random() < 0.75:
        forms = ((), (1,), (columns,), (1, columns), (rows, 1), (rows, columns), (1, 1))
        inputs.append(_other(site, rng.choice(forms), within=within))
    elif rng.random() < 0.2:
        inputs.append(None)
    whole = (None, None, 1.0, 2.0, 3.0)
    factors = (*whole, -1.0, 0.5, 0.0, -0.25, narrow(rng.uniform(0.1, 2))) if is_float(site.dtype) else whole
    flags = {"transA": 1 if turned else rng.choice((None, 0)), "transB": 1 if flipped else rng.choice((None, 0))}
    return Call("Gemm", tuple(inputs), attributes({"alpha": rng.choice(factors), "beta": rng.choice(factors), **flags}))


def _bounds_gemm(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of alpha A B + beta C. The factor may be applied to A, to the sum or to each product."""
    dtype, left = types[0].dtype, call.operand(0)
    inner = left.shape[0 if call.integer("transA") else 1]
    alpha, beta = call.number("alpha", 1.0), call.number("beta", 1.0)
    product = dot("float64", inner, call.facts(0), call.facts(1))
    lo, hi = times((product.lo, product.hi), (alpha, alpha))
    partial = product.partial * max(1.0, abs(alpha))
    integral = product.integral and alpha.is_integer()
    if call.has(2):
        added = times(span(call.facts(2)), (beta, beta))
        lo, hi, partial = lo + added[0], hi + added[1], partial + call.facts(2).magnitude * max(1.0, abs(beta))
        integral = integral and call.facts(2).integral and beta.is_integer()
    return (accumulated(dtype, lo, hi, terms=inner + 2, partial=partial, integral=integral),)


EQUATIONS = (
    "ij,jk->ik", "ij,jk", "bij,bjk->bik", "...ij,...jk->...ik", "bhqd,bhkd->bhqk", "bhqk,bkhd->bqhd", "i,j->ij",
    "ij,ij->", "i,i", "ij->ji", "bij->bi", "ii->i", "ii", "...ii->...i", "ij,j->i", "ij,kj->ki", "bi,ij,bj->b",
    "ij,jk,kl->il", "i,i,i->i", "b...c->c...", "ijk,jil->kl", "a,b,c->cab",
)  # fmt: skip
"""Common contractions, transpositions, diagonals, traces and outer products of one to three operands."""

_COMMON = 0.4
"""Share of the equations that are among the common ones; the others are drawn letter by letter."""

_MOST_WORK = 64
"""Products of an Einsum at most, as a multiple of the most elements of a tensor."""

_ELLIPSIS = "01"
"""Digits that stand for the axes of an ellipsis."""


def draw_equation(rng: random.Random, most_rank: int) -> str:
    """Draw an equation of one to three operands with ranks from 1 to `most_rank`.

    Letters are small or capital, may repeat in a term (diagonals), and need not be in the result, whose order is free.
    """
    alphabet = rng.sample("abcdeijkABK", rng.randint(1, 5))
    dots = rng.random() < 0.2
    terms = []
    for _ in range(rng.choice((1, 1, 1, 2, 2, 2, 2, 3))):
        term = rng.sample(alphabet, rng.randint(1, max(1, min(4, most_rank, len(alphabet)))))
        if rng.random() < 0.2 and len(term) < most_rank:
            term.insert(rng.randint(0, len(term)), rng.choice(term))
        if dots and rng.random() < 0.7:
            term.insert(rng.randint(0, len(term)), "...")
        terms.append(term)
    comma, arrow = rng.choice(((",", "->"), (",", "->"), (", ", " -> ")))
    left = comma.join(map("".join, terms))
    if rng.random() < 0.15:
        return left
    kept = [letter for letter in dict.fromkeys(alphabet) if letter in left and rng.random() < 0.65]
    rng.shuffle(kept)
    if "..." in left:
        kept.insert(rng.randint(0, len(kept)), "...")
    return f"{left}{arrow}{''.join(kept)}"


def einsum_terms(equation: str, hidden: int) -> tuple[list[str], str]:
    """Return the subscripts of each operand and of the result, with `...` written as `hidden` digits.

    Without an arrow the result has the ellipsis, then every letter that occurs once, in the order of ASCII.
    """
    left, arrow, right = equation.replace(" ", "").replace("...", _ELLIPSIS[:hidden]).partition("->")
    if not arrow:
        once = sorted(letter for letter in set(left) - {","} if left.count(letter) == 1 and letter.isalpha())
        right = (_ELLIPSIS[:hidden] if "..." in equation else "") + "".join(once)
    return left.split(","), right


def _sample_einsum(site: Site) -> Call:
    rng = site.rng
    equation = rng.choice(EQUATIONS) if rng.random() < _COMMON else draw_equation(rng, site.limits.max_rank)
    terms, result = einsum_terms(equation, rng.randrange(3))
    first = rng.randrange(len(terms))
    sizes: dict[str, int] = {}

    def consistent(shape: Shape) -> bool:
        found: dict[str, int] = {}
        return all(found.setdefault(letter, size) == size for letter, size in zip(terms[first], shape, strict=True))

    def draw() -> Shape:
        chosen = {letter: draw_size(rng, site.limits) for letter in terms[first]}
        return tuple(chosen[letter] for letter in terms[first])

    rank = len(terms[first])
    lead = site.operand(ranks=(rank, rank), fits=consistent, draw=draw)
    sizes.update(zip(terms[first], lead.shape, strict=True))
    for letter in "".join(terms):
        sizes.setdefault(letter, draw_size(rng, site.limits))
    shapes = [tuple(sizes[letter] for letter in term) for term in terms]
    if max(math.prod(sizes[letter] for letter in result), *map(math.prod, shapes)) > site.limits.max_elements:
        raise RejectedDraft(f"the operands or result of {equation} would be too large")
    if math.prod(sizes.values()) > _MOST_WORK * site.limits.max_elements:
        raise RejectedDraft(f"{equation} would take too long")
    operands = [lead if place == first else _other(site, shape) for place, shape in enumerate(shapes)]
    return Call("Einsum", tuple(operands), attributes({"equation": equation}))


def _contracted(call: Call) -> int:
    """Number of terms summed into one element of an Einsum."""
    equation = call.text("equation")
    shapes = [call.operand(index).shape for index in range(len(call.inputs))]
    bare = [term.replace("...", "") for term in equation.replace(" ", "").partition("->")[0].split(",")]
    hidden = max(len(shape) - len(term) for shape, term in zip(shapes, bare, strict=True))
    terms, result = einsum_terms(equation, hidden)
    sizes = {
        letter: size
        for term, shape in zip(terms, shapes, strict=True)
        for letter, size in zip(term, shape, strict=True)
    }
    return math.prod(size for letter, size in sizes.items() if letter not in result)


def _bounds_einsum(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a sum of products; operands may be contracted in any order, so each pairwise sum counts as partial."""
    count = _contracted(call)
    product, integral, partial = (1.0, 1.0), True, float(max(count, 1))
    for index in range(len(call.inputs)):
        facts = call.facts(index)
        product, integral = times(product, span(facts)), integral and facts.integral
        partial *= max(1.0, facts.magnitude)
    lo, hi = count * product[0], count * product[1]
    terms = count * len(call.inputs)
    return (accumulated(types[0].dtype, lo, hi, terms=terms, partial=partial, integral=integral),)


def _sample_matmul_integer(site: Site) -> Call:
    rng = site.rng
    left = site.operand(ranks=(1, 4))
    shape, other = matrix_partner(site, left.shape), rng.choice(_BYTES)
    inputs: list[Operand | None] = [left, _other(site, shape, other)]
    row = (left.shape[-2],) if left.rank == 2 else (*left.shape[:-1], 1)
    column = (shape[-1],) if len(shape) == 2 else (*shape[:-2], 1, shape[-1])
    zeros: list[Operand | None] = [
        _zero_point(site, site.dtype, row if left.rank > 1 else ()),
        _zero_point(site, other, column if len(shape) > 1 else ()),
    ]
    while zeros and zeros[-1] is None:
        zeros.pop()
    return Call("MatMulInteger", tuple(inputs + zeros))


def _zero_point(site: Site, dtype: str, whole: Shape) -> Operand | None:
    """Return a zero point: absent, a scalar, or one for each row or column."""
    chance = site.rng.random()
    if chance < 0.3:
        return None
    return site.weight(whole if chance < 0.5 and math.prod(whole) > 1 else (), dtype)


def _centred(call: Call, index: int, zero: int) -> Facts:
    """Facts of input `index` minus its zero point."""
    x = call.facts(index)
    if not call.has(zero):
        return x
    lo, hi = minus(span(x), span(call.facts(zero)))
    return Facts(lo, hi, integral=True)


def _bounds_matmul_integer(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (dot("int32", call.operand(0).shape[-1], _centred(call, 0, 2), _centred(call, 1, 3)),)


def _sample_det(site: Site) -> Call:
    def draw() -> Shape:
        size = site.rng.randint(1, 4)
        batch = tuple(site.rng.randint(1, 3) for _ in range(site.rng.choice((0, 0, 1, 2))))
        return (*batch, size, size)

    return Call("Det", (site.operand(ranks=(2, 4), fits=_square, draw=draw),))


def _square(shape: Shape) -> bool:
    return shape[-1] == shape[-2] and 1 <= shape[-1] <= 4


def _bounds_det(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds by Leibniz's formula, n! products of n elements; elimination rounds, so they are widened."""
    size = call.operand(0).shape[-1]
    largest = math.factorial(size) * widest(span(call.facts())) ** size
    return (rounded(types[0].dtype, -largest, largest, terms=4 * size, partial=largest),)


_INTEGER = Exactness.INTEGER


def _page_gemm(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(1).shape
    if len(left) != 2 or len(right) != 2:
        return False
    rows, inner = left[::-1] if call.integer("transA") else left
    same, columns = right[::-1] if call.integer("transB") else right
    bias = shape_of(call, 2)
    return inner == same and (bias is None or broadcasts_to(bias, (rows, columns)))


def _page_einsum(call: Call) -> bool:
    """A letter stands for one size."""
    sizes: dict[str, int] = {}
    terms = call.text("equation").replace(" ", "").partition("->")[0].split(",")
    if len(terms) != len(call.inputs):
        return False
    for place, term in enumerate(terms):
        shape = call.operand(place).shape
        before, dots, after = term.partition("...")
        letters = before + after
        if len(letters) > len(shape) or (not dots and len(letters) != len(shape)):
            return False
        ends = (*shape[: len(before)], *shape[len(shape) - len(after) :]) if dots else shape
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, ends, strict=True)):
            return False
    return True


def _page_matmul_integer(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(1).shape
    return lines(_optional(call, 2), left, -2) and lines(_optional(call, 3), right, -1)


def _optional(call: Call, index: int) -> Operand | None:
    return call.operand(index) if call.has(index) else None


SPECS = (
    OpSpec(
        "MatMul", _PRODUCTS, _sample_matmul, _bounds_matmul, _INTEGER, _FAMILY, shapes=rules.product(),
        well_formed=lambda call: bool(call.operand(0).rank and call.operand(1).rank), broadcasting=stacks,
        fusion="out-elementwise-fusable", traits=("weights-as-inputs",), special=SUMS,
    ),
    OpSpec(
        "Gemm", _PRODUCTS, _sample_gemm, _bounds_gemm, _INTEGER, _FAMILY, shapes=rules.gemm, well_formed=_page_gemm,
        fusion="out-elementwise-fusable", traits=("weights-as-inputs",),
    ),
    OpSpec(
        "Einsum", (*FLOATS[:3], *INTEGERS), _sample_einsum, _bounds_einsum, Exactness.INTEGER, _FAMILY,
        well_formed=_page_einsum, fusion="out-elementwise-fusable",
    ),
    OpSpec(
        "MatMulInteger", _BYTES, _sample_matmul_integer, _bounds_matmul_integer, _INTEGER, _FAMILY, since=10,
        shapes=rules.product(), well_formed=_page_matmul_integer, structural={"quantisation": (2, 3)},
        broadcasting=stacks, fusion="out-elementwise-fusable",
    ),
    OpSpec("Det", FLOATS, _sample_det, _bounds_det, Exactness.ROUNDS, _FAMILY),
)  # fmt: skip
