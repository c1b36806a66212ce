"""The front ends to which instances are migrated: pairs of a DL library and a compiler, as target specs.

A compiler that reads ONNX is its own front end for ONNX; its `About` lists the front ends for other libraries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from miscompile.base.errors import UsageError
from miscompile.instances.instance import LIBRARIES
from miscompile.targets.registry import faces, parse_target, target_names, with_front_end


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A pair of a library and a compiler. `target` is the target spec that names the front end."""

    library: str
    target: str

    @property
    def reference(self) -> str:
        """The spec of the library itself, which defines the correct results of a program."""
        return reference_of(self.library)

    @property
    def name(self) -> str:
        """Library and compiler, for tables and names of files: `torch-openvino`, `keras-openvino-tensorflow`."""
        spec = parse_target(self.target)
        parts = (self.library, spec.about.name, *([spec.via] if spec.via not in ("", self.library) else []))
        return "-".join(parts) + (f"-{spec.version}" if spec.version else "")


def reference_of(library: str) -> str:
    """Return the spec of the target that defines the correct results of a library's programs."""
    return next(face.name for face in faces() if face.role in ("reference", "library") and library in face.kinds)


def compilers() -> tuple[str, ...]:
    """Return the names of all compilers that have a front end."""
    return tuple(name for name in target_names() if parse_target(name).about.role == "compiler" and _of(name))


def all_front_ends() -> tuple[FrontEnd, ...]:
    """Return all front ends by library."""
    found = [front for name in compilers() for front in _of(name)]
    return tuple(sorted(found, key=lambda front: LIBRARIES.index(front.library)))


def chosen(targets: Iterable[str], libraries: Sequence[str] = ()) -> tuple[FrontEnd, ...]:
    """Return the front ends that `targets` name: a spec with `via` names one, a compiler's name all of the
    compiler's.

    `all` names every front end. `libraries` restricts the result to these libraries. Raises SpecError for an unknown
    target, UsageError for one without a front end for these libraries.
    """
    found: dict[str, FrontEnd] = {}
    for target in targets:
        ways = all_front_ends() if target == "all" else _of(target)
        kept = [front for front in ways if not libraries or front.library in libraries]
        if not kept:
            have = ", ".join(dict.fromkeys(front.library for front in ways)) or "none"
            raise UsageError(f"{target} has no front end for {', '.join(libraries) or 'any library'}; it has: {have}")
        found |= {front.target: front for front in kept}
    return tuple(found.values())


def _of(target: str) -> tuple[FrontEnd, ...]:
    """Return the front ends that a spec names. Raises SpecError when it does not parse."""
    spec = parse_target(target)
    if spec.via:
        return (FrontEnd(spec.about.kinds[0], target),)
    about = spec.about
    own = ("onnx",) if "onnx" in about.kinds and not about.lowered and not about.executors else ()
    ways = [FrontEnd("onnx", target) for _ in own]
    return (*ways, *(FrontEnd(front.library, with_front_end(target, via)) for via, front in about.fronts.items()))
