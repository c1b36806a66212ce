"""`environment.toml`: the requirements of certain versions of a compiler, as data.

[[environment]]
versions = "<1.19"                # releases of the compiler that this entry is for; default: all
requires = ["numpy<2"]            # required distributions; {version} is replaced by the compiler's version
python = "<3.13"                  # Pythons that there are wheels for
max_opset = 21                    # newest opset it reads, if older than today's
max_ir_version = 10
note = "built against the C interface of numpy 1"

All entries that match a version apply together.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from miscompile.base.errors import SpecError
from miscompile.base.versions import satisfies

ALWAYS = ("numpy", "ml_dtypes", "onnx")
"""Distributions that workers, adapters and standalone scripts need for every compiler."""

_FIELDS = {"versions", "requires", "python", "max_opset", "max_ir_version", "note"}


@dataclass(frozen=True, slots=True)
class Pins:
    """The requirements of some releases: distributions for pip, Python versions, and limits on opset and IR version.

    None for an opset or IR version keeps the target's limit.
    """

    requires: tuple[str, ...] = ()
    python: str = ""
    max_opset: int | None = None
    max_ir_version: int | None = None


@dataclass(frozen=True, slots=True)
class PinEntry:
    """One entry: the releases that it is for, and their requirements."""

    versions: str
    pins: Pins


def pins(package: str, version: str) -> Pins:
    """Return the requirements of release `version` of the target in `package`. Raises SpecError for a malformed
    file."""
    found = [entry.pins for entry in _entries(package) if satisfies(version, entry.versions)]
    return Pins(
        tuple(text.replace("{version}", version) for one in found for text in one.requires),
        ",".join(one.python for one in found if one.python),
        min((one.max_opset for one in found if one.max_opset is not None), default=None),
        min((one.max_ir_version for one in found if one.max_ir_version is not None), default=None),
    )


@cache
def _entries(package: str) -> tuple[PinEntry, ...]:
    place = files(package).joinpath("environment.toml")
    return parse_pins(place.read_text("utf-8"), package) if place.is_file() else ()


def parse_pins(text: str, package: str) -> tuple[PinEntry, ...]:
    """Read the entries of the `environment.toml` in `package`. Raises SpecError that describes an invalid entry."""
    try:
        return tuple(_entry(row) for row in tomllib.loads(text).get("environment", ()))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, SpecError) as error:
        raise SpecError(f"environment.toml of {package} is malformed: {error}") from None


def _entry(row: dict[str, object]) -> PinEntry:
    unknown = set(row) - _FIELDS
    if unknown:
        raise KeyError(f"unknown field {', '.join(sorted(unknown))}")
    versions, python, requires = row.get("versions", ""), row.get("python", ""), row.get("requires", [])
    opset, ir = row.get("max_opset"), row.get("max_ir_version")
    if not isinstance(versions, str) or not isinstance(python, str) or not isinstance(requires, list):
        raise TypeError("versions and python are texts, requires is a list")
    if not (isinstance(opset, int | None) and isinstance(ir, int | None)):
        raise TypeError("max_opset and max_ir_version are numbers")
    satisfies("1", versions)
    satisfies("3.11", python)
    return PinEntry(versions, Pins(tuple(str(text) for text in requires), python, opset, ir))
