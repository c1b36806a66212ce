"""All operator specs by name, and what the schema of an opset admits."""

from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from onnx import defs

from miscompile.base.errors import SpecError
from miscompile.ops import families as package
from miscompile.ops.spec import Call, CallRule, OperatorTrait, OpSpec, always

FAMILIES = (
    "math",
    "arithmetic",
    "logic",
    "activation",
    "select",
    "movement",
    "slicing",
    "indexing",
    "ranking",
    "filling",
    "reduction",
    "linear",
    "convolution",
    "pooling",
    "normalization",
    "softmax",
    "quantization",
    "recurrent",
    "vision",
    "signal",
    "attention",
    "additions",
)
"""The order of the modules of `miscompile.ops.families`, on which the cases of a seed depend.

A module that is not named here comes after these, in alphabetical order.
"""

_FLAGS = frozenset({
    "keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "allowzero", "exclusive", "reverse", "largest",
    "sorted", "select_last_index", "fmod", "noop_with_empty_axes", "saturate", "storage_order", "align_corners",
})  # fmt: skip
"""Integer attributes that are boolean: 0 or 1."""


@cache
def families() -> tuple[str, ...]:
    """Return the names of the modules that hold specs, in the order in which the registry lists their operators."""
    found = sorted(module.name for module in iter_modules(package.__path__))
    return (*FAMILIES, *(name for name in found if name not in FAMILIES))


ALIASES = {"float": "float32", "double": "float64"}
"""Names of element types in onnx's schemas that differ from ours."""


@cache
def specs() -> dict[str, OpSpec]:
    """Return every spec by its operator's name; its guard also refuses calls that break the operator's page.

    Two families that define one operator are an error.
    """
    return {op: replace(spec, defined=_both(spec)) for op, spec in written().items()}


@cache
def written() -> dict[str, OpSpec]:
    """Return every spec by its operator's name, as its family has written it.

    Its guard suffices for calls of its own sampler, because the conformance kit checks that these keep the operator's
    page.
    """
    found: dict[str, OpSpec] = {}
    for family in families():
        for spec in import_module(f"miscompile.ops.families.{family}").SPECS:
            if spec.op in found:
                raise SpecError(f"operator {spec.op} has two specs: in {found[spec.op].family} and in {family}")
            found[spec.op] = spec
    return found


def _both(spec: OpSpec) -> CallRule:
    page, defined = spec.well_formed, spec.defined
    return lambda call: _keeps(page, call) and defined(call)


def well_formed(call: Call) -> bool:
    """Tell whether `call` keeps the rules of its operator's page that onnx's checker and inference do not enforce.

    Samplers keep these rules; fusion motifs with unusual attributes, and reductions, may break them. A model that
    breaks one is invalid, so no result of a compiler on it is a bug. Calls of operators without a spec keep them.
    """
    spec = written().get(call.op)
    return _keeps(always if spec is None else spec.well_formed, call)


def _keeps(page: CallRule, call: Call) -> bool:
    for name, attribute in call.attributes.items():
        if name in _FLAGS and attribute.value not in (0, 1):
            return False
    return bool(call.domain) or page(call)


@cache
def having(trait: OperatorTrait) -> frozenset[str]:
    """Return the operators whose specs have `trait`."""
    return frozenset(op for op, spec in written().items() if trait in spec.traits)


@cache
def schema(op: str, opset: int, domain: str = "") -> "defs.OpSchema | None":
    """Return onnx's schema of `op` as of `opset`, or None when there is none."""
    try:
        return defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None


@cache
def version_of(op: str, opset: int, domain: str = "") -> int:
    """Return the version of `op` that is in force in `opset`; the opset's own number when there is none."""
    known = schema(op, opset, domain)
    return int(known.since_version) if known is not None else opset


@cache
def dtypes_of(op: str, opset: int) -> tuple[str, ...]:
    """Return the element types that spec and schema of `opset` both allow; empty when the operator is not there."""
    return admitted(specs()[op], opset)


def admitted(spec: OpSpec, opset: int) -> tuple[str, ...]:
    """Return the element types that `spec` names and the schema of `opset` allows, registered or not."""
    known = schema(spec.op, opset, spec.domain)
    if known is None or opset < spec.since:
        return ()
    formals, place = (known.inputs, spec.main) if spec.main >= 0 else (known.outputs, ~spec.main)
    names = {name.removeprefix("tensor(").removesuffix(")") for name in formals[min(place, len(formals) - 1)].types}
    return tuple(dtype for dtype in spec.dtypes if dtype in {ALIASES.get(name, name) for name in names})
