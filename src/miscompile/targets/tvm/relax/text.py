"""Encoding of Relax modules as text: TVMScript, with separate constants.

TVM's own JSON is not usable, because `tvm.ir.save_json` of 0.27.0.post1 with `apache-tvm-ffi` 0.1.15.post2 crashes
with a segmentation fault on every object of TVM. The printer crashes too when it writes constants
(`show_meta=True`). TVMScript without them refers to constants by number, so they can be stored separately and passed
to the parser.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.script.parser.core import entry as script_parser

_KEY = "ir.GenericConst"
"""The name of the list of a module's constants in TVMScript."""

TEXT_ERRORS = (
    RuntimeError,
    AssertionError,
    ValueError,
    TypeError,
    AttributeError,
    KeyError,
    IndexError,
    NameError,
    SyntaxError,
)
"""The exceptions of TVM's printer and parser for a module that has no text; their diagnostics are RuntimeErrors."""


def encode(module: Any) -> dict[str, Any]:
    """Return `module` as `{"script": TVMScript, "constants": [{"dtype", "shape", "data"}]}`, `data` in base 64.

    The caller checks that the text parses back to the same module. Raises RuntimeError for a module that TVM cannot
    print.
    """
    script = module.script(show_meta=False, verbose_expr=False)
    constants = [_packed(one.value.numpy()) for one in constants_of(module)]
    return {"script": script, "constants": constants}


def parse(script: str, constants: Sequence[Mapping[str, Any]], check: bool = True) -> Any:
    """Return the module that `encode` encoded. Raises the parser's exceptions for text that it cannot read."""
    table = [relax.const(_unpacked(one)) for one in constants]
    return script_parser.parse(script, {**script_parser._default_globals(), "metadata": {_KEY: table}}, check)


def constants_of(module: Any) -> list[Any]:
    """Return the distinct constants other than scalars, in the order in which the printer numbers them."""
    found: list[Any] = []

    def visit(value: Any) -> None:
        large = isinstance(value, tvm.ir.GenericConst) and len(getattr(value.value, "shape", ()))
        if large and not any(value.same_as(one) for one in found):
            found.append(value)

    for place in sorted(module.functions, key=lambda place: str(place.name_hint)):
        if isinstance(module[place], relax.Function):
            relax.analysis.post_order_visit(module[place], visit)
    return found


def digest(module: Any) -> str:
    """Return a module's structural hash, which is equal if a text parses back to the same module."""
    return f"{tvm_ffi.structural_hash(module) & (2**64 - 1):016x}"


def _packed(array: Any) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def _unpacked(packed: Mapping[str, Any]) -> Any:
    data = base64.b64decode(packed["data"])
    return tvm.runtime.tensor(np.frombuffer(data, np.dtype(packed["dtype"])).reshape(packed["shape"]))
