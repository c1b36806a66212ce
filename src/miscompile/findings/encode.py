"""The lossless encoding of values as JSON for the folders of findings."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.specs import spec_text, stored_spec
from miscompile.core.case import Dim, Port, Program
from miscompile.core.finding import Property, Signature
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor, text_of
from miscompile.core.verdict import Evidence, FindingKind

JsonObject = dict[str, Any]


def jsonable(value: Any) -> Any:  # noqa: ANN401 - facts are open by design
    """Return `value` as strict JSON: tuples and sets become lists, numpy scalars Python numbers.

    Floats that JSON lacks become the texts "nan", "inf" and "-inf". Raises TypeError for anything else.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, frozenset | set):
        return sorted(jsonable(item) for item in value)
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    raise TypeError(f"a fact of type {type(value).__name__} is no JSON value")


def build_json(build: Build) -> JsonObject:
    """Return build settings as a JSON object."""
    return {
        "level": build.level,
        "disabled": sorted(build.disabled),
        "threads": build.threads,
        "device": build.device,
        "observe": build.observe,
        "form": spec_text(build.transform),
        "sequence": list(build.sequence),
    }


def build_from(data: Mapping[str, Any]) -> Build:
    """Return the build that `build_json` wrote. Raises SpecError when its `form`, a transform's text, is no spec."""
    first = Build(data["level"], frozenset(data["disabled"]), data["threads"], data["device"], data["observe"])
    return replace(first, transform=stored_spec(data.get("form", "")), sequence=tuple(data.get("sequence", ())))


def evidence_facts(evidence: Evidence) -> JsonObject:
    """Return the part of the evidence that a finding's facts contain: rule, output, both builds, details.

    `against` is the target of the reference build, if it differs from the faulty target.
    """
    reference = evidence.reference
    crossed = reference is not None and reference.target != evidence.faulty.target
    return {
        **({"against": reference.target} if reference is not None and crossed else {}),
        "rule": evidence.rule,
        "output": evidence.output,
        "faulty": build_json(evidence.faulty.build),
        "reference": None if reference is None else build_json(reference.build),
        "details": jsonable(evidence.details),
    }


def builds_of(facts: Mapping[str, Any]) -> tuple[Build, Build | None]:
    """Return the faulty and the reference build that `evidence_facts` wrote; raises KeyError when they are absent."""
    reference = facts["reference"]
    return build_from(facts["faulty"]), None if reference is None else build_from(reference)


def against_of(facts: Mapping[str, Any]) -> str:
    """Return the target of the reference build; an empty text when it is the faulty target."""
    return str(facts.get("against", ""))


def signature_from(data: Mapping[str, Any]) -> Signature:
    """Return the signature of a JSON object with its fields. Raises ValueError for an unknown kind of finding."""
    if data["kind"] not in get_args(FindingKind):
        raise ValueError(f"unknown kind of finding '{data['kind']}'")
    return Signature(data["target"], data["kind"], data["stage"], tuple(data["culprits"]), data["text"])


def property_from(data: Mapping[str, Any]) -> Property:
    """Return the property of a JSON object with its fields."""
    return Property(data["oracle"], data["target"], signature_from(data["signature"]))


def ports_json(program: Program) -> JsonObject:
    """Return a program without its bytes, as JSON, with the digest that the bytes must have."""
    return {
        "kind": program.kind,
        "digest": program.digest,
        "inputs": [_port_json(port) for port in program.inputs],
        "outputs": [_port_json(port) for port in program.outputs],
    }


def program_from(data: Mapping[str, Any], payload: bytes) -> Program:
    """Return the program that `ports_json` described. Raises ValueError when the bytes have another digest."""
    program = Program(
        data["kind"], payload, tuple(map(_port_from, data["inputs"])), tuple(map(_port_from, data["outputs"]))
    )
    if program.digest != data["digest"]:
        raise ValueError("the program's bytes do not have the digest that was noted")
    return program


def _port_json(port: Port) -> JsonObject:
    shape = None if port.shape is None else list(port.shape)
    return {"name": port.name, "dtype": port.dtype, "shape": shape, "exact": port.exact}


def _port_from(data: Mapping[str, Any]) -> Port:
    shape: tuple[Dim, ...] | None = None if data["shape"] is None else tuple(data["shape"])
    return Port(data["name"], data["dtype"], shape, data["exact"])


def tensor_array(value: Tensor) -> Array:
    """Return the array for `feeds.npz`: the storage array, or for strings the bytes of a JSON list."""
    if value.dtype != "string":
        return value.array
    return np.frombuffer(json.dumps([text_of(item) for item in value.array.flat]).encode(), np.uint8)


def tensor_from(dtype: str, shape: tuple[int, ...], array: Array) -> Tensor:
    """Return the tensor that `tensor_array` wrote. Raises ValueError when array, dtype and shape do not agree."""
    if dtype == "string":
        texts: Array = np.empty(shape, object)
        texts.flat[:] = json.loads(array.tobytes())
        return Tensor(dtype, texts)
    if dtype not in DTYPES or array.dtype != DTYPES[dtype].storage or array.shape != shape:
        raise ValueError(f"an array of {array.dtype}{list(array.shape)} was noted as {dtype}{list(shape)}")
    return Tensor(dtype, array)
