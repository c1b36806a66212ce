"""Softmax, LogSoftmax and Hardmax, and the losses built on them.

Sources: the operator pages of the ONNX documentation.
"""

import math
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import FLOATS
from miscompile.core.tensor import Array
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.page_rules import has_axis, shape_of
from miscompile.ops.rounding import rounded
from miscompile.ops.shapes import draw_size
from miscompile.ops.spec import BoundsOf, Call, Operand, OpSpec, RunOperands, Shape, Site

_FAMILY = "softmax"


def _near(dtype: str) -> tuple[float, float]:
    """Return a range of scores whose softmax does not underflow, so that its logarithm is finite."""
    return (-3.0, 3.0) if dtype == "float16" else (-30.0, 30.0)


def _along_axis(op: str, bounds: BoundsOf, exactness: Exactness, *, near: bool = False) -> OpSpec:
    """Spec of an operator that normalises along the axis of its `axis` attribute, which must not be empty."""

    def sample(site: Site) -> Call:
        within = _near(site.dtype) if near else None
        x = site.operand(ranks=(1, 5), within=within, fits=lambda shape: min(shape, default=0) > 0)
        return Call(op, (x,), attributes({"axis": site.rng.choice((None, *range(-x.rank, x.rank)))}))

    def defined(call: Call) -> bool:
        x = call.operand(0)
        return x.shape[call.integer("axis", -1)] > 0 and (not near or x.facts.inside(*_near(x.dtype)))

    return OpSpec(
        op,
        FLOATS,
        sample,
        bounds,
        exactness,
        _FAMILY,
        defined,
        shapes="first",
        approximated=exactness is _ROUGH,
        well_formed=has_axis(-1),
    )


def _bounds_softmax(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    wide = rounded(types[0].dtype, 0.0, 1.0, terms=call.operand(0).shape[call.integer("axis", -1)])
    return (Bounds(0.0, wide.hi),)


def _log_softmax(dtype: str, x: Facts, count: int) -> Bounds:
    """Bounds of x - log(sum(exp(x))) over `count` elements, computed with the maximum taken off first."""
    return rounded(dtype, x.lo - x.hi - math.log(count), 0.0, terms=count + 4, partial=x.magnitude + 1)


def _bounds_log_softmax(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_log_softmax(types[0].dtype, call.facts(), call.operand(0).shape[call.integer("axis", -1)]),)


def _bounds_hardmax(_: Call, __: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a one-hot vector; the first of several equal maxima gets the one, by the operator's definition."""
    return (Bounds(0, 1, integral=True),)


_WEIGHTS = (0.25, 4.0)
"""Range of class weights: the mean divides by their sum."""


def _scores(site: Site, within: tuple[float, float] | None) -> Operand:
    """Return scores of shape (batch, classes, more...)."""

    def draw() -> Shape:
        rank = site.rng.choice((2, 2, 3, 4))
        sizes = [max(1, draw_size(site.rng, site.limits)) for _ in range(rank)]
        while math.prod(sizes) > site.limits.max_elements:
            sizes[sizes.index(max(sizes))] //= 2
        return tuple(sizes)

    return site.operand(ranks=(2, 4), within=within, fits=lambda shape: min(shape) > 0, draw=draw)


def _sample_loss(site: Site, op: str, outputs: int = 1, within: tuple[float, float] | None = None) -> Call:
    """Draw a loss with labels in range, either unknown or known; only known ones may be ignored.

    At least one known label is not ignored, because the mean of no element is undefined.
    """
    rng = site.rng
    scores, kind = _scores(site, within), rng.choice(("int32", "int64"))
    classes, shape, ignored = scores.shape[1], (scores.shape[0], *scores.shape[2:]), None
    if rng.random() < 0.4:
        labels = site.operand(kind, shape=shape, within=(0, classes - 1))
        ignored = -1 if rng.random() < 0.2 else None
    else:
        ignored = rng.choice((None, -1, rng.randrange(classes), 255)) if classes > 1 else None
        drawn = [rng.randrange(classes) for _ in range(math.prod(shape))]
        if ignored is not None:
            drawn = [ignored if rng.random() < 0.3 else label for label in drawn]
            drawn[0] = 0 if ignored else 1
        labels = site.known(np.array(drawn, kind).reshape(shape))
    inputs = [scores, labels]
    if rng.random() < 0.5:
        inputs.append(site.weight((classes,), within=_WEIGHTS))
    found = attributes({"reduction": rng.choice((None, "none", "sum", "mean")), "ignore_index": ignored})
    return Call(op, tuple(inputs), found, outputs=outputs)


def _sample_cross_entropy(site: Site) -> Call:
    return _sample_loss(site, "SoftmaxCrossEntropyLoss", site.rng.choice((1, 1, 2)), _near(site.dtype))


def _sample_likelihood(site: Site) -> Call:
    return _sample_loss(site, "NegativeLogLikelihoodLoss")


def _defined_cross_entropy(call: Call) -> bool:
    x = call.operand(0)
    return _defined_loss(call) and x.facts.inside(*_near(x.dtype))


def _defined_loss(call: Call) -> bool:
    """Guard: each label names a class or is ignored, some label counts, and the class weights are positive."""
    labels, classes = call.operand(1), call.operand(0).shape[1]
    if call.has(2) and call.facts(2).lo <= 0:
        return False
    ignored = call.integer("ignore_index", -(2**40))
    if labels.value is None:
        inside = labels.facts.inside(0, classes - 1)
        return inside and not 0 <= ignored < classes and math.prod(labels.shape) > 0
    counted: Array = labels.value[labels.value != ignored]
    return counted.size > 0 and bool(((counted >= 0) & (counted < classes)).all())


def _reduced(call: Call, dtype: str, negated: Facts) -> Bounds:
    """Bounds of a loss whose terms are the elements of `negated` times their class weights."""
    count = math.prod(call.operand(1).shape)
    most = call.facts(2).hi if call.has(2) else 1.0
    terms = {"none": 1, "sum": count, "mean": count}[call.text("reduction", "mean")]
    # A weighted mean is divided by the sum of the weights, so the weights cancel in its bounds, not in its sums.
    factor = {"none": most, "sum": count * most, "mean": 1.0}[call.text("reduction", "mean")]
    lo, hi = min(negated.lo * factor, 0.0), max(negated.hi * factor, 0.0)
    partial = terms * most * negated.magnitude
    wide = rounded(dtype, lo, hi, terms=terms + 4, partial=factor * negated.magnitude)
    return Bounds(wide.lo, wide.hi, partial=max(partial, wide.partial))


def _bounds_likelihood(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x = call.facts()
    return (_reduced(call, types[0].dtype, Facts(-x.hi, -x.lo)),)


def _bounds_cross_entropy(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    chances = _log_softmax(types[0].dtype, call.facts(), call.operand(0).shape[1])
    return (_reduced(call, types[0].dtype, Facts(-chances.hi, -chances.lo)), chances)[: call.outputs]


_ROUGH = Exactness.TRANSCENDENTAL


def _page_loss(call: Call) -> bool:
    """A label for each place, a weight for each class."""
    x = call.operand(0).shape
    if len(x) < 2 or call.operand(1).shape != (x[0], *x[2:]):
        return False
    return shape_of(call, 2) in (None, (x[1],))


def _labelled(node: Node, value: RunOperands) -> bool:
    """Labels are classes, or the index to ignore."""
    scores, labels = value(0), value(1)
    if scores is None or labels is None or len(scores.shape) < 2:
        return True
    ignored = node.attributes.get("ignore_index")
    counted = labels.array if ignored is None else labels.array[labels.array != int(ignored.value)]
    return bool(((counted >= 0) & (counted < scores.shape[1])).all())


SPECS = (
    replace(_along_axis("Softmax", _bounds_softmax, _ROUGH), fusion="reduction"),
    replace(_along_axis("LogSoftmax", _bounds_log_softmax, _ROUGH, near=True), fusion="reduction"),
    _along_axis("Hardmax", _bounds_hardmax, Exactness.INDEX),
    OpSpec(
        "SoftmaxCrossEntropyLoss", FLOATS, _sample_cross_entropy, _bounds_cross_entropy, _ROUGH, _FAMILY,
        _defined_cross_entropy, well_formed=_page_loss, defined_on=_labelled,
    ),
    OpSpec(
        "NegativeLogLikelihoodLoss", FLOATS, _sample_likelihood, _bounds_likelihood, Exactness.ROUNDS, _FAMILY,
        _defined_loss, well_formed=_page_loss, defined_on=_labelled,
    ),
)  # fmt: skip
