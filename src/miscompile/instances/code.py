"""Instances as JSON, without loss. A value that JSON lacks is an object whose key `$` names its type.

{"$": "tuple", "of": [...]}     {"$": "dict", "of": [[key, value], ...]}     {"$": "float", "of": "nan"}
{"$": "name", "kind": "dtype", "name": "float32"}      {"$": "made", "api": ..., "args": [...], "kwargs": {...}}
{"$": "tensor", "dtype": ..., "shape": [...], "of": base64 of the deflated bytes, little endian}
{"$": "drawn", ...}     {"$": "slot", ...}     {"$": "slice", "of": [start, stop, step]}
"""

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

import numpy as np

from miscompile.base.digest import digest_bytes
from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import UsageError
from miscompile.core.tensor import Tensor
from miscompile.instances.instance import CALL_STYLES, LIBRARIES, OPERAND_POLICIES, Instance, Parent
from miscompile.instances.values import Drawn, Held, Made, Name, NameKind, SliceValue, Slot, Value

JsonValue = Any

_NO_PARENTS: Mapping[str, Parent] = {}

_LARGEST = 1 << 26
"""Greatest number of bytes of a tensor; an archive that declares more is damaged."""

_MOST_DRAWN = 1 << 24
"""Greatest number of elements of a drawn tensor; no harvest writes a larger recipe."""

_MOST_SIZES = 64
"""Greatest number of dimensions in numpy."""


def encoded(instance: Instance) -> bytes:
    """Return the instance as one line of JSON, without its parent, which programs and findings do not need twice."""
    return _bytes(to_json(instance))


def with_parent(instance: Instance) -> bytes:
    """Return the instance as one line of JSON, with its parent inside."""
    return _bytes({**to_json(instance), **({"parent": parent_json(instance.parent)} if instance.parent else {})})


def referring(instance: Instance) -> bytes:
    """Return the instance as one line of JSON, with the digest of its parent, which an archive holds once."""
    return _bytes({**to_json(instance), **({"parent": digest_of(instance.parent.instance)} if instance.parent else {})})


def content(instance: Instance) -> bytes:
    """Return the content that identifies an instance: everything except its origin."""
    data = to_json(instance)
    return _bytes({key: value for key, value in data.items() if key not in ("source", "origin")})


def digest_of(instance: Instance) -> str:
    """Return a digest of the content: equal uses of an operator have equal digests, whichever test they are from."""
    return digest_bytes(content(instance))


def decoded(line: bytes | str, parents: Mapping[str, Parent] = _NO_PARENTS) -> Instance:
    """Return the instance that `encoded`, `with_parent` or `referring` wrote. Raises UsageError for anything else.

    `parents` are those that a line may refer to, by digest.
    """
    try:
        return from_json(json.loads(line), parents)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, zlib.error) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UsageError(f"this is no operator instance ({reason})") from None


def to_json(instance: Instance) -> dict[str, JsonValue]:
    """Return the instance as a JSON object without empty fields."""
    data = {
        "library": instance.library,
        "api": instance.api,
        "form": instance.form,
        "args": [value_json(value) for value in instance.args],
        "kwargs": {name: value_json(value) for name, value in sorted(instance.kwargs.items())},
        "inputs": [value_json(value) for value in instance.inputs],
        "options": {name: value_json(value) for name, value in sorted(instance.options.items())},
        "version": instance.version,
        "results": list(instance.results),
        "operands": instance.operands,
        "source": instance.source,
        "origin": instance.origin,
    }
    return {key: value for key, value in data.items() if value not in ([], {}, 0, "")}


def from_json(data: Mapping[str, JsonValue], parents: Mapping[str, Parent] = _NO_PARENTS) -> Instance:
    """Return the instance of a JSON object. Raises what `decoded` catches for what is none."""
    if data["library"] not in LIBRARIES or data["form"] not in CALL_STYLES:
        raise ValueError(f"library {data['library']}, form {data['form']}")
    if data.get("operands", "") not in OPERAND_POLICIES:
        raise ValueError(f"operands {data['operands']!r:.40}")
    return Instance(
        data["library"],
        str(data["api"]),
        data["form"],
        tuple(value_from(item) for item in data.get("args", ())),
        {str(name): value_from(item) for name, item in data.get("kwargs", {}).items()},
        tuple(value_from(item) for item in data.get("inputs", ())),
        {str(name): value_from(item) for name, item in data.get("options", {}).items()},
        _natural(data.get("version", 0), "operator set", 1 << 31),
        tuple(bool(named) for named in data.get("results", ())),
        str(data.get("source", "")),
        str(data.get("origin", "")),
        data.get("operands", ""),
        _parent(data.get("parent"), parents),
    )


def parent_json(parent: Parent) -> dict[str, JsonValue]:
    """Return a parent as a JSON object."""
    return {"instance": to_json(parent.instance), "names": dict(parent.names)}


def parent_from(data: Mapping[str, JsonValue]) -> Parent:
    """Return the parent of a JSON object. Raises what `decoded` catches for what is none."""
    return Parent(from_json(data["instance"]), {str(key): str(name) for key, name in data["names"].items()})


def _parent(data: JsonValue, parents: Mapping[str, Parent]) -> Parent | None:
    """Return the parent that a line holds or names; None for one that the archive lacks, as nothing depends on it."""
    return parents.get(data) if isinstance(data, str) else parent_from(data) if data else None


def value_json(value: Value) -> JsonValue:
    """Return a parameter as JSON."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"$": "float", "of": str(value)}
        case complex():
            return {"$": "complex", "of": [value_json(value.real), value_json(value.imag)]}
        case list():
            return [value_json(item) for item in value]
        case tuple():
            return {"$": "tuple", "of": [value_json(item) for item in value]}
        case dict():
            return {"$": "dict", "of": [[value_json(key), value_json(item)] for key, item in value.items()]}
        case Name(kind, name):
            return {"$": "name", "kind": kind, "name": name}
        case SliceValue(start, stop, step):
            return {"$": "slice", "of": [value_json(part) for part in (start, stop, step)]}
        case Made(api, args, kwargs):
            given = {name: value_json(item) for name, item in sorted(kwargs.items())}
            return {"$": "made", "api": api, "args": [value_json(item) for item in args], "kwargs": given}
        case Held(tensor):
            return {"$": "tensor", "dtype": tensor.dtype, "shape": list(tensor.shape), "of": _packed(tensor)}
        case Drawn(dtype, shape, low, high, seed):
            return {"$": "drawn", "dtype": dtype, "shape": list(shape), "low": low, "high": high, "seed": seed}
        case Slot(index, dtype, shape):
            return {"$": "slot", "index": index, "dtype": dtype, "shape": list(shape)}


def value_from(data: JsonValue) -> Value:
    """Return the parameter that `value_json` wrote. Raises the exceptions that `decoded` catches for other data."""
    if isinstance(data, list):
        return [value_from(item) for item in data]
    if not isinstance(data, dict):
        if data is None or isinstance(data, bool | int | float | str):
            return data
        raise TypeError(f"a {type(data).__name__} is no parameter")
    return _READERS[data["$"]](data)


def _name(data: Mapping[str, JsonValue]) -> Name:
    if data["kind"] not in get_args(NameKind):
        raise ValueError(f"a name of kind {data['kind']}")
    return Name(cast(NameKind, data["kind"]), str(data["name"]))


def _made(data: Mapping[str, JsonValue]) -> Made:
    given = {str(name): value_from(item) for name, item in data["kwargs"].items()}
    return Made(str(data["api"]), tuple(value_from(item) for item in data["args"]), given)


def _dict(data: Mapping[str, JsonValue]) -> dict[Value, Value]:
    return {value_from(key): value_from(item) for key, item in data["of"]}


def _complex(data: Mapping[str, JsonValue]) -> complex:
    real, imaginary = (value_from(part) for part in data["of"])
    if not isinstance(real, int | float) or not isinstance(imaginary, int | float):
        raise ValueError("a complex number has two numbers")
    return complex(real, imaginary)


def _drawn(data: Mapping[str, JsonValue]) -> Drawn:
    """Return a recipe, validated here because a later error could not name the line."""
    found = Drawn(_dtype(data), _shape(data), data["low"], data["high"], _natural(data["seed"], "seed"))
    if math.prod(size or 1 for size in found.shape) > _MOST_DRAWN:
        raise ValueError(f"a recipe for more than {_MOST_DRAWN} elements")
    ends = data["low"], data["high"]
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in ends) or not found.drawable():
        raise ValueError(f"no {found.dtype} can be drawn from {found.low} to {found.high}")
    return found


def _slot(data: Mapping[str, JsonValue]) -> Slot:
    found = Slot(_natural(data["index"], "index"), _dtype(data), _shape(data))
    if math.prod(found.shape) > _LARGEST:
        raise ValueError(f"an input of more than {_LARGEST} elements")
    return found


def _dtype(data: Mapping[str, JsonValue]) -> str:
    if data["dtype"] not in DTYPES:
        raise ValueError(f"there is no element type {data['dtype']!r:.40}")
    return str(data["dtype"])


def _shape(data: Mapping[str, JsonValue]) -> tuple[int, ...]:
    shape = tuple(_natural(size, "size") for size in data["shape"])
    if len(shape) > _MOST_SIZES:
        raise ValueError(f"a tensor of {len(shape)} dimensions")
    return shape


def _natural(number: JsonValue, what: str, end: int = 1 << 63) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < end:
        raise ValueError(f"{number!r:.40} is no {what}")
    return number


_READERS: dict[str, Callable[[Mapping[str, JsonValue]], Value]] = {
    "float": lambda data: float(data["of"]),
    "complex": _complex,
    "tuple": lambda data: tuple(value_from(item) for item in data["of"]),
    "dict": _dict,
    "name": _name,
    "slice": lambda data: SliceValue(*(value_from(part) for part in data["of"])),
    "made": _made,
    "tensor": lambda data: Held(_unpacked(data)),
    "drawn": _drawn,
    "slot": _slot,
}


def _packed(tensor: Tensor) -> JsonValue:
    if tensor.dtype == "string":
        return [str(item) for item in tensor.array.ravel()]
    array = np.ascontiguousarray(tensor.array, DTYPES[tensor.dtype].storage)
    return base64.b64encode(zlib.compress(array.tobytes(), 6)).decode("ascii")


def _unpacked(data: Mapping[str, JsonValue]) -> Tensor:
    dtype, shape = _dtype(data), _shape(data)
    if dtype == "string":
        if not all(isinstance(item, str) for item in data["of"]):
            raise ValueError("a tensor of texts holds something else")
        return Tensor(dtype, np.array(data["of"], object).reshape(shape))
    storage = DTYPES[dtype].storage
    opener = zlib.decompressobj()
    raw = opener.decompress(base64.b64decode(data["of"]), _LARGEST)
    if opener.unconsumed_tail:
        raise ValueError("a tensor that is larger than any test has")
    return Tensor(dtype, np.frombuffer(raw, storage).reshape(shape).copy())


def _bytes(data: Mapping[str, JsonValue]) -> bytes:
    return json.dumps(data, separators=(",", ":"), sort_keys=True, allow_nan=False).encode()
