"""Normalisation: batch, instance, group, layer, RMS, local response, Lp and mean-variance.

Sources: the operator pages of the ONNX documentation. Where the variance comes from the data, epsilon is drawn large
enough that the rounding of a variance computed as E[x²] - E[x]² cannot make it negative.
"""

import math

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.elementwise import narrow
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import broadcasts_to, has_axis, shape_of
from miscompile.ops.rounding import rounded
from miscompile.ops.shapes import draw_size
from miscompile.ops.spatial import divisors, images
from miscompile.ops.spec import Call, CallRule, Operand, OpSpec, Shape, Site

_FAMILY = "normalization"
_EPSILON = 1e-5
_EPSILONS = (_EPSILON, 1e-3, 0.01, 0.5)
_CALM: Span = (-64.0, 64.0)
"""Range of data whose variance is computed: its square is far below the largest float16."""
_SPREAD: Span = (0.25, 4.0)
"""Range of given variances."""


def _mixed(site: Site) -> str:
    """Draw the type of parameters that may differ from the data's: mostly the same."""
    return site.rng.choice(FLOATS) if site.rng.random() < 0.15 else site.dtype


def _sample_batch(site: Site) -> Call:
    """Draw a BatchNormalization in inference. Data of rank one or two has its channels, or one channel, only."""
    rng = site.rng

    def draw() -> Shape:
        return tuple(max(1, draw_size(rng, site.limits)) for _ in range(2))

    flat = rng.random() < 0.2
    x = site.operand(ranks=(2, 2), fits=lambda s: s[1] > 0, draw=draw) if flat else images(site)
    channels, scaled, moments = (x.shape[1],), site.dtype, site.dtype
    if site.opset >= 15:
        scaled = _mixed(site)
    if site.opset >= 14:
        moments = _mixed(site)
    inputs = (
        x,
        site.weight(channels, scaled),
        site.weight(channels, scaled),
        site.weight(channels, moments),
        site.weight(channels, moments, within=_SPREAD),
    )
    found: dict[str, PlainValue | None] = {
        "epsilon": rng.choice((None, _EPSILON, 1e-3, 0.1)),
        "momentum": rng.choice((None, None, 0.5)),
        "training_mode": 0 if site.opset >= 14 and rng.random() < 0.1 else None,
    }
    return Call("BatchNormalization", inputs, attributes(found))


def _bounds_batch(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, scale, bias, mean, variance = (call.facts(index) for index in range(5))
    spread = (x.magnitude + mean.magnitude) / math.sqrt(variance.lo)
    # Folding into y = x * a + b multiplies the mean by the scale apart from the data; the sum of magnitudes holds both.
    largest = spread * scale.magnitude + bias.magnitude
    return (rounded(types[0].dtype, -largest, largest, terms=8, partial=largest),)


def _defined_batch(call: Call) -> bool:
    return call.facts(4).lo > 0


def _epsilon(site: Site, x: Operand) -> float | None:
    """Draw an epsilon that outweighs the rounding of the variance of `x`; None stands for the default."""
    usable = [epsilon for epsilon in _EPSILONS if _outweighs(epsilon, x)]
    if not usable:
        raise RejectedDraft("no epsilon outweighs the rounding of the variance")
    drawn = site.rng.choice(usable)
    return None if drawn == _EPSILON and site.rng.random() < 0.5 else drawn


def _outweighs(epsilon: float, x: Operand) -> bool:
    return epsilon >= 8 * 2.0**-23 * x.facts.magnitude**2


def _calm(call: Call) -> bool:
    """Guard: epsilon outweighs the rounding of the variance, and there is something to average."""
    x = call.operand(0)
    return _outweighs(call.number("epsilon", _EPSILON), x) and min(x.shape[1:], default=1) > 0


def _normalized(dtype: str, count: int, scale: Facts, bias: Facts | None) -> Bounds:
    """Bounds of scale * z + bias, where z is one of `count` numbers of variance at most one: |z| <= sqrt(count)."""
    largest = math.sqrt(count) * scale.magnitude + (bias.magnitude if bias else 0.0)
    return rounded(dtype, -largest, largest, terms=16, partial=largest)


def _calm_images(site: Site) -> Operand:
    x = images(site)
    if not x.facts.inside(*_CALM):
        return site.operand(shape=x.shape, within=_CALM)
    return x


def _sample_instance(site: Site) -> Call:
    x = _calm_images(site)
    inputs = (x, site.weight((x.shape[1],)), site.weight((x.shape[1],)))
    return Call("InstanceNormalization", inputs, attributes({"epsilon": _epsilon(site, x)}))


def _bounds_instance(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    count = math.prod(call.operand(0).shape[2:])
    return (_normalized(types[0].dtype, count, call.facts(1), call.facts(2)),)


def _sample_group(site: Site) -> Call:
    x = _calm_images(site)
    if 0 in x.shape:
        raise RejectedDraft("an empty batch meets a Reshape in the body of GroupNormalization")
    inputs = (x, site.weight((x.shape[1],)), site.weight((x.shape[1],)))
    groups, stash = site.rng.choice(divisors(x.shape[1])), site.rng.choice((None, None, 1))
    found: dict[str, PlainValue | None] = {"num_groups": groups, "stash_type": stash, "epsilon": _epsilon(site, x)}
    return Call("GroupNormalization", inputs, attributes(found))


def _bounds_group(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    count = math.prod(call.operand(0).shape[1:]) // call.integer("num_groups", 1)
    return (_normalized(types[0].dtype, count, call.facts(1), call.facts(2)),)


def _tail(site: Site) -> tuple[Operand, int, dict[str, PlainValue | None]]:
    """Draw data, the first normalised axis, and the attributes of layer and RMS normalisation."""
    rng = site.rng
    x = site.operand(ranks=(1, 5), within=_CALM, fits=lambda shape: min(shape, default=0) > 0)
    axis = x.rank - 1 if rng.random() < 0.5 else rng.randrange(x.rank)
    written = None if axis == x.rank - 1 and rng.random() < 0.5 else rng.choice((axis, axis - x.rank))
    return x, axis, {"axis": written, "stash_type": rng.choice((None, None, 1)), "epsilon": _epsilon(site, x)}


def _parameter(site: Site, whole: Shape, dtype: str) -> Operand:
    """Return a scale or bias of the normalised shape, sometimes one that broadcasts to it."""
    if site.rng.random() < 0.1:
        whole = whole[-1:] if site.rng.random() < 0.5 else (1,) * len(whole)
    return site.weight(whole, dtype)


def _parameter_of_data(site: Site, x: Operand, axis: int) -> Operand:
    """Return a scale or bias of LayerNormalization, sometimes one of the rank of the data."""
    if site.rng.random() < 0.08:
        return site.weight((1,) * axis + x.shape[axis:], site.dtype)
    return _parameter(site, x.shape[axis:], site.dtype)


def _sample_layer(site: Site) -> Call:
    x, axis, found = _tail(site)
    inputs = [x, _parameter_of_data(site, x, axis)]
    if site.rng.random() < 0.6:
        inputs.append(_parameter_of_data(site, x, axis))
    outputs = site.rng.choice((1, 1, 1, 2, 3))
    return Call("LayerNormalization", tuple(inputs), attributes(found), outputs=outputs)


def _normalised_count(call: Call) -> int:
    shape = call.operand(0).shape
    return math.prod(shape[call.integer("axis", -1) % len(shape) :])


def _bounds_layer(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of the result, the mean, and the inverse standard deviation.

    A variance is at most a quarter of the squared range; rounding may double it at worst.
    """
    x, count, epsilon = call.facts(), _normalised_count(call), narrow(call.number("epsilon", _EPSILON))
    dtype = types[0].dtype
    found = [_normalized(dtype, count, call.facts(1), call.facts(2) if call.has(2) else None)]
    if call.outputs > 1:
        found.append(rounded(types[1].dtype, x.lo, x.hi, terms=count))
    if call.outputs > 2:
        most = 1 / math.sqrt(epsilon)
        least = 1 / math.sqrt((x.hi - x.lo) ** 2 / 2 + DTYPES[dtype].eps * count * x.magnitude**2 + epsilon)
        found.append(Bounds(least * 0.9, most * 1.1))
    return tuple(found)


def _sample_rms(site: Site) -> Call:
    """Draw an RMSNormalization; its scale has the data's type, since onnx's inference knows no other."""
    x, axis, found = _tail(site)
    return Call("RMSNormalization", (x, _parameter(site, x.shape[axis:], site.dtype)), attributes(found))


def _bounds_rms(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_normalized(types[0].dtype, _normalised_count(call), call.facts(1), None),)


def _sample_lrn(site: Site) -> Call:
    rng = site.rng
    x = images(site, ranks=(4, 4) if rng.random() < 0.7 else rng.choice(((3, 3), (5, 5))))
    found: dict[str, PlainValue | None] = {
        "size": rng.choice((1, 3, 3, 5)) if rng.random() < 0.7 else rng.choice((2, 4)),
        "alpha": rng.choice((None, 0.01, 0.5)),
        "beta": rng.choice((None, 0.5, 1.0)),
        "bias": rng.choice((None, 0.5, 2.0)),
    }
    return Call("LRN", (x,), attributes(found))


def _bounds_lrn(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of x / (bias + alpha / size * sum of squares) ** beta, whose denominator is at least bias ** beta."""
    x, bias, beta = call.facts(), call.number("bias", 1.0), narrow(call.number("beta", 0.75))
    squares = call.integer("size") * x.magnitude**2
    largest = x.magnitude / bias**beta
    wide = rounded(types[0].dtype, -largest, largest, terms=8)
    return (Bounds(wide.lo, wide.hi, partial=max(squares, largest)),)


def _defined_lrn(call: Call) -> bool:
    return call.integer("size") > 0 and call.number("bias", 1.0) > 0 and call.number("alpha", 1e-4) >= 0


def _sample_lp(site: Site) -> Call:
    """Draw an LpNormalization of data of one sign, whose norms are then positive."""
    rng = site.rng
    within = (0.25, 64.0) if rng.random() < 0.7 else (-64.0, -0.25)
    x = site.operand(ranks=(1, 5), within=within, fits=lambda shape: min(shape, default=0) > 0)
    axis = rng.choice((None, *range(-x.rank, x.rank)))
    return Call("LpNormalization", (x,), attributes({"axis": axis, "p": rng.choice((None, 1, 2))}))


def _bounds_lp(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x = call.operand(0)
    count, p = x.shape[call.integer("axis", -1)], call.integer("p", 2)
    lo, hi = (0.0, 1.0) if x.facts.lo > 0 else (-1.0, 0.0)
    wide = rounded(types[0].dtype, lo, hi, terms=count)
    return (Bounds(wide.lo, wide.hi, partial=count * x.facts.magnitude**p),)


def _defined_lp(call: Call) -> bool:
    x = call.operand(0)
    return (x.facts.lo > 0 or x.facts.hi < 0) and min(x.shape) > 0


def _sample_mean_variance(site: Site) -> Call:
    """Draw a MeanVarianceNormalization of a constant: epsilon is 1e-9, so the variance must be known to be large."""
    rng = site.rng
    rank = rng.choice((4, 4, 4, 3, 2))
    shape = tuple(rng.randint(2, 4) for _ in range(rank))
    # Always written: onnx's inference of the operator's function body rejects the default.
    axes = (
        (0, 2, 3) if rank == 4 and rng.random() < 0.5 else tuple(sorted(rng.sample(range(rank), rng.randint(1, rank))))
    )
    numbers = np.array([rng.uniform(-3, 3) for _ in range(math.prod(shape))]).reshape(shape)
    x = site.known(tensor(numbers, site.dtype).array, site.dtype)
    call = Call("MeanVarianceNormalization", (x,), attributes({"axes": axes}))
    if not _varies(call):
        raise RejectedDraft("the drawn data hardly vary")
    return call


def _varies(call: Call) -> bool:
    """Guard: the data are known, and the variance over the axes is nowhere small."""
    x = call.operand(0)
    if x.value is None:
        return False
    numbers = Tensor(x.dtype, x.value).numbers().astype(np.float64)
    return bool((numbers.var(axis=call.integers("axes", (0, 2, 3))) > 0.1).all())


def _bounds_mean_variance(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    shape = call.operand(0).shape
    largest = math.sqrt(math.prod(shape[axis] for axis in call.integers("axes", (0, 2, 3))))
    return (rounded(types[0].dtype, -largest, largest, terms=16),)


_ROUGH = Exactness.TRANSCENDENTAL
_SINGLE = ("float32",)
"""The type that onnx's own inference of the body of MeanVarianceNormalization takes."""

_LIKE = rules.only_like_first


def _channels(*places: int) -> CallRule:
    """Rule: these inputs hold one number for each channel of the first input."""

    def rule(call: Call) -> bool:
        x = call.operand(0).shape
        channels = (x[1] if len(x) > 1 else 1,)
        return all(shape_of(call, place) in (None, channels) for place in places)

    return rule


def _page_group_normalization(call: Call) -> bool:
    """Groups divide the channels. The Reshape in the operator's function body is not defined for an empty batch."""
    groups = call.integer("num_groups")
    if 0 in call.operand(0).shape:
        return False
    return _channels(1, 2)(call) and groups > 0 and call.operand(0).shape[1] % groups == 0


def _page_layer_normalization(call: Call) -> bool:
    """Scale and bias broadcast to the normalised axes, which are not empty; LayerNormalization allows ones before."""
    x = call.operand(0)
    if not has_axis(-1)(call):
        return False
    tail = x.shape[call.integer("axis", -1) % x.rank :]
    whole = (1,) * (x.rank - len(tail)) + tail if call.op == "LayerNormalization" else tail
    return 0 not in tail and all(
        shape is None or broadcasts_to(shape, whole) for shape in (shape_of(call, 1), shape_of(call, 2))
    )


SPECS = (
    OpSpec(
        "BatchNormalization",
        FLOATS,
        _sample_batch,
        _bounds_batch,
        _ROUGH,
        _FAMILY,
        _defined_batch,
        shapes=_LIKE,
        well_formed=_channels(1, 2, 3, 4),
        fusion="out-elementwise-fusable",
        traits=("weights-as-inputs",),
    ),
    OpSpec(
        "InstanceNormalization",
        FLOATS,
        _sample_instance,
        _bounds_instance,
        _ROUGH,
        _FAMILY,
        _calm,
        shapes=_LIKE,
        well_formed=_channels(1, 2),
        fusion="reduction",
    ),
    OpSpec(
        "GroupNormalization",
        FLOATS,
        _sample_group,
        _bounds_group,
        _ROUGH,
        _FAMILY,
        _calm,
        since=21,
        shapes=_LIKE,
        well_formed=_page_group_normalization,
        fusion="reduction",
        traits=("stash-type",),
    ),
    OpSpec(
        "LayerNormalization",
        FLOATS,
        _sample_layer,
        _bounds_layer,
        _ROUGH,
        _FAMILY,
        _calm,
        since=17,
        shapes=_LIKE,
        well_formed=_page_layer_normalization,
        fusion="reduction",
        traits=("stash-type", "weights-as-inputs"),
    ),
    OpSpec(
        "RMSNormalization",
        FLOATS,
        _sample_rms,
        _bounds_rms,
        _ROUGH,
        _FAMILY,
        _calm,
        since=23,
        shapes=_LIKE,
        well_formed=_page_layer_normalization,
        fusion="reduction",
        traits=("stash-type",),
    ),
    OpSpec("LRN", FLOATS, _sample_lrn, _bounds_lrn, _ROUGH, _FAMILY, _defined_lrn, shapes=_LIKE),
    OpSpec(
        "LpNormalization",
        FLOATS,
        _sample_lp,
        _bounds_lp,
        _ROUGH,
        _FAMILY,
        _defined_lp,
        shapes=_LIKE,
        well_formed=has_axis(-1),
        fusion="reduction",
    ),
    OpSpec(
        "MeanVarianceNormalization",
        _SINGLE,
        _sample_mean_variance,
        _bounds_mean_variance,
        _ROUGH,
        _FAMILY,
        _varies,
        shapes=_LIKE,
        traits=("axes-as-written",),
    ),
)
