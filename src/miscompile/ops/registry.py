"""All operator specs by name, and what the schema of an opset admits."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module

from onnx import defs

from miscompile.base.errors import SpecError
from miscompile.ops.spec import Call, OpSpec
from miscompile.ops.wellformed.check import well_formed

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
"""Modules of `miscompile.ops.families`; adding a family means adding its name."""


@cache
def specs() -> dict[str, OpSpec]:
    """Return every spec by its operator's name; its guard also refuses calls that break the operator's page.

    Two families that define one operator are an error.
    """
    return {op: replace(spec, defined=_both(spec.defined)) for op, spec in written().items()}


@cache
def written() -> dict[str, OpSpec]:
    """Return every spec by its operator's name, as its family has written it.

    Its guard suffices for calls of its own sampler, because the conformance kit checks that these keep the operator's
    page.
    """
    found: dict[str, OpSpec] = {}
    for family in FAMILIES:
        for spec in import_module(f"miscompile.ops.families.{family}").SPECS:
            if spec.op in found:
                raise SpecError(f"operator {spec.op} has two specs: in {found[spec.op].family} and in {family}")
            found[spec.op] = spec
    return found


def _both(defined: Callable[[Call], bool]) -> Callable[[Call], bool]:
    return lambda call: well_formed(call) and defined(call)


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
    spec = specs()[op]
    known = schema(op, opset, spec.domain)
    if known is None or opset < spec.since:
        return ()
    formals = known.inputs if spec.main >= 0 else known.outputs
    formal = formals[min(spec.main if spec.main >= 0 else ~spec.main, len(formals) - 1)]
    allowed = {name.removeprefix("tensor(").removesuffix(")") for name in formal.types}
    aliases = {"float": "float32", "double": "float64"}
    names = {aliases.get(name, name) for name in allowed}
    return tuple(dtype for dtype in spec.dtypes if dtype in names)
