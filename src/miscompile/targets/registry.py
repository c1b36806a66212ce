"""Targets by name. A target spec is `name` or `name{option=value}`; the compiler itself is never imported here."""

from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.specs import split_spec
from miscompile.targets.about import About

TARGETS = ("onnxruntime", "toy")
"""Every target has a folder `miscompile/targets/<name>` with `about.py`, `adapter.py`, `known.toml`, `README.md`."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A parsed target spec."""

    text: str
    about: About
    options: dict[str, str]


def about(name: str) -> About:
    """Return the face of the target called `name`. Raises SpecError for an unknown name."""
    if name not in TARGETS:
        raise SpecError(f"there is no target '{name}'; there are: {', '.join(TARGETS)}")
    face = import_module(f"miscompile.targets.{name}.about").ABOUT
    assert isinstance(face, About)
    return face


def parse_target(text: str) -> TargetSpec:
    """Parse a target spec. Raises SpecError for an unknown target or option."""
    name, options = split_spec(text)
    face = about(name)
    for key in options:
        if key not in face.options:
            raise SpecError(f"target {name} has no option '{key}'; it has: {', '.join(face.options) or 'none'}")
    return TargetSpec(text, face, options)


def versions(face: About) -> dict[str, str]:
    """Return the installed versions of a target's distributions. Raises UsageError when one is missing."""
    found = {}
    for distribution in face.distributions:
        try:
            found[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            raise UsageError(
                f"target {face.name} needs {distribution}, which is not installed; run: pip install {distribution}"
            ) from None
    return found


def load_attribute(path: str) -> Any:  # noqa: ANN401 - whatever stands at the path
    """Import `module:name` and return the named object; in the worker this is where the compiler comes in."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
