"""Targets by name. A target spec is `name`, `name==version`, `name{option=value}` or `name==version{option=value}`.

A folder of this package with an `about.py` is a target; other packages add theirs with entry points in the group
`miscompile.targets`, each `name = "package.about:ABOUT"`. The compiler itself is never imported here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import metadata
from importlib.resources import files
from typing import Any

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import MissingCompilerError, SpecError, UsageError
from miscompile.base.plugins import Catalogue, attribute
from miscompile.base.specs import Spec, parse_spec
from miscompile.base.versions import is_version
from miscompile.targets.about import About, Front
from miscompile.targets.pins import ALWAYS, pins

_TARGET = re.compile(r"\s*([A-Za-z_][\w.\-]*)\s*(?:==\s*([^\s{]*)\s*)?(\{.*)?", re.DOTALL)

_PACKAGE = "miscompile.targets"

CATALOGUE = Catalogue(
    "target",
    "miscompile.targets",
    About,
    {
        folder.name: f"{_PACKAGE}.{folder.name}.about:ABOUT"
        for folder in sorted(files(_PACKAGE).iterdir(), key=lambda one: one.name)
        if folder.is_dir() and folder.joinpath("about.py").is_file()
    },
)
"""All targets. A target's package contains `about.py`, `known.toml` and `README.md`."""

DEFAULT_TARGET = "onnxruntime"
"""The compiler that is installed with this package; it is the default for commands without a target."""

VIA = "via"
"""The option of a spec that names a front end."""


EXECUTOR = "executor"
"""The option of a spec that names what runs the result of a target that has `executors`."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A parsed target spec.

    `about` describes the version that will run, if it is known here: the version in the spec, or else the one
    installed beside this tool. With a front end, `about` is the compiler's description restricted to that front end.
    `version` is None when the spec names none, and `via` is empty when it names no front end.
    """

    text: str
    about: About
    options: Mapping[str, str]
    version: str | None = None
    via: str = ""

    @property
    def release(self) -> str:
        """The name of the target, with the version if the spec names one, without options, as used in signatures."""
        return f"{self.about.name}=={self.version}" if self.version is not None else self.about.name

    @property
    def environment_name(self) -> str:
        """The name of this target's environments, which includes the front end because it may need more
        distributions."""
        return f"{self.about.name}+{self.via}" if self.via else self.about.name

    @property
    def front(self) -> Front | None:
        """The front end that the spec names; None when it names none."""
        return about(self.about.name).fronts[self.via] if self.via else None


@cache
def about(name: str) -> About:
    """Return the description of the target called `name`, with its package.

    Raises SpecError for an unknown name, UsageError for a target of another package that cannot be used.
    """
    if name not in CATALOGUE.names:
        raise SpecError(f"there is no target '{name}'; there are: {', '.join(target_names())}")
    face, offer = CATALOGUE.get(name), CATALOGUE.offer(name)
    if face.name != name:
        raise UsageError(
            f"the target '{name}' of the package {offer.package} is broken: its About is called '{face.name}'"
        )
    return replace(face, package=offer.module.rpartition(".")[0])


@cache
def target_names() -> tuple[str, ...]:
    """Return the names of all targets for which programs can be generated, which excludes the DL libraries."""
    return tuple(sorted(face.name for face in faces() if face.role != "library"))


@cache
def faces() -> tuple[About, ...]:
    """Return the descriptions of all usable targets, DL libraries included."""
    broken = broken_targets()
    return tuple(about(name) for name in CATALOGUE.names if name not in broken)


def broken_targets() -> dict[str, str]:
    """Return the targets of other packages that cannot be used, each with the reason."""
    found: dict[str, str] = {}
    for name in CATALOGUE.names:
        try:
            about(name)
        except UsageError as error:
            found[name] = str(error)
    return found


def parse_target(text: str) -> TargetSpec:
    """Parse a target spec. Raises SpecError for an unknown target or option, or an invalid version."""
    name, version, written = _split(text)
    options = dict(parse_spec(name + written).options)
    face = about(name)
    via = options.pop(VIA, "") if face.fronts else ""
    for key in options:
        if key not in face.options:
            raise SpecError(f"target {name} has no option '{key}'; it has: {', '.join(face.options) or 'none'}")
    if version is not None and compiler_of(face) is None:
        raise SpecError(f"target {name} is a part of this tool and has no versions; write {name}")
    chosen = next((face.option_passes[key] for key in options if key in face.option_passes), face.passes)
    face = _of_version(replace(face, passes=chosen), version)
    return TargetSpec(text, _through(face, via), options, version, via)


def _through(face: About, via: str) -> About:
    """Return a compiler's description for its front end `via`: for programs of a library, without the compiler's
    transforms."""
    if not via:
        return face
    if via not in face.fronts:
        raise SpecError(f"{face.name} has no front end '{via}'; it has: {', '.join(face.fronts)}")
    front = face.fronts[via]
    return replace(
        face,
        title=f"{face.title}, {front.title}",
        kinds=(front.library,),
        adapter=front.adapter,
        distributions=tuple(dict.fromkeys((*face.distributions, *front.distributions))),
        script="",
        passes=(),
        transforms=(),
        function_transforms=(),
        altering=(),
        derivatives=(),
        sequences=(),
        dynamic=False,
        functions=False,
        lowered=False,
        devices=("cpu",),
    )


def settled_transform(target: str, transform: Spec) -> Spec:
    """Return the complete spec of a `transform` that the target's adapter applies.

    `About.settle` completes it. Raises SpecError for an invalid one. Other transforms are returned unchanged and
    unchecked.
    """
    face = parse_target(target).about
    if transform.name not in face.transforms:
        return transform
    settled = load_attribute(face.settle)(transform)
    assert isinstance(settled, Spec)
    return settled


def compiler_of(face: About) -> str | None:
    """Return the distribution whose version is the target's version; None for a target that is part of this tool."""
    return next((name for name in face.distributions if name not in ALWAYS), None)


def quick_targets() -> tuple[str, ...]:
    """Return the quick targets (`About.quick`) whose packages are installed, which a campaign of voters compares.

    Raises UsageError when fewer than two are installed, because one result proves nothing.
    """
    found = _installed_quick()
    if len(found) < 2:
        raise UsageError(f"voters need two quick targets; run `pip install 'miscompile[{quick_extras()}]'`")
    return found


def quick_extras() -> str:
    """Return the extras that install the quick targets, as they stand in `pip install 'miscompile[...]'`."""
    return ",".join(face.extra for face in faces() if face.quick and face.extra)


@lru_cache(256)
def voters_for(text: str) -> tuple[str, ...]:
    """Return the quick targets that are installed here and are other compilers than that of the target `text`."""
    own = parse_target(text).about.name
    return tuple(name for name in _installed_quick() if name != own)


def slower_voters_for(text: str) -> tuple[str, ...]:
    """Return the other compilers that are installed here and give a second opinion, but are not quick.

    They run only where quicker implementations disagree.
    """
    own, quick = parse_target(text).about.name, _installed_quick()
    return tuple(name for name in second_implementations(own) if name not in quick)


def _installed_quick() -> tuple[str, ...]:
    quick = sorted((face for face in faces() if face.quick), key=lambda face: face.name != DEFAULT_TARGET)
    return tuple(face.name for face in quick if all(installed(one) is not None for one in face.distributions))


@lru_cache(256)
def _split(text: str) -> tuple[str, str | None, str]:
    """Return name, version and options of a target spec: `name==1.2{a=b}` gives `name`, `1.2` and `{a=b}`.

    Options are not rewritten, because a campaign is identified by the text of its targets. Raises SpecError when the
    text after `==` is not a version, or the whole text is not a spec.
    """
    found = _TARGET.fullmatch(text)
    if not found:
        return parse_spec(text).name, None, ""
    name, version, options = found[1], found[2], found[3] or ""
    if version is not None and not is_version(version):
        raise SpecError(f"'{version}' in '{text}' is no version; write {name}==1.2.3 or just {name}")
    return name, version, options


def with_version(text: str, version: str) -> str:
    """Return the spec `text` with `version`, which replaces an existing one."""
    name, _, options = _split(text)
    return f"{name}=={version}{options}"


def with_front_end(text: str, via: str) -> str:
    """Return the spec `text` with the front end `via` before its other options."""
    name, version, options = _split(text)
    given = options.removeprefix("{").rstrip("} ").strip()
    named = name if version is None else f"{name}=={version}"
    return f"{named}{{{VIA}={via}{', ' + given if given else ''}}}"


@cache
def other_builds() -> dict[str, tuple[str, ...]]:
    """Return, for distributions of all targets, the alternative distributions that install the same package for a
    device."""
    return {name: others for face in faces() for name, others in face.other_builds.items()}


@cache
def installed(distribution: str) -> str | None:
    """Return the version of a distribution, or of another build of it, installed beside this tool; None without one."""
    for name in (*other_builds().get(distribution, ()), distribution):
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return None


def versions(face: About) -> dict[str, str]:
    """Return the versions of a target's distributions beside this tool.

    Raises MissingCompilerError when one is missing.
    """
    found = {name: installed(name) for name in face.distributions}
    missing = [name for name, version in found.items() if version is None]
    if missing:
        raise MissingCompilerError(f"target {face.name} needs {', '.join(missing)}, not installed here; {_ways(face)}")
    return {name: version for name, version in found.items() if version is not None}


def _ways(face: About) -> str:
    wanted = f"'miscompile[{face.extra}]'" if face.extra else " ".join(face.distributions)
    return f"run `pip install {wanted}`, or `miscompile targets install {face.name}` for an environment of its own"


def _of_version(face: About, version: str | None) -> About:
    """Return a target's description for a version; an old version only reads old models."""
    compiler = compiler_of(face)
    if version is None and compiler is not None:
        version = installed(compiler)
    if version is None or not is_version(version):  # a compiler built from source may have any version text
        return face
    limits = pins(face.package, version)
    return replace(
        face,
        max_opset=min(face.max_opset, limits.max_opset or face.max_opset),
        max_ir_version=min(face.max_ir_version, limits.max_ir_version or face.max_ir_version),
    )


def load_attribute(path: str) -> Any:  # noqa: ANN401 - whatever stands at the path
    """Import `module:name` and return the named object; in the worker this imports the compiler."""
    return attribute(path)


@lru_cache(256)
def second_executor(text: str) -> str:
    """Return the spec of the target `text` with another executor of its results (`About.executors`).

    Empty for a target that has none, and for one that is not installed here.
    """
    try:
        spec = parse_target(text)
    except SpecError:
        return ""
    own = spec.options.get(EXECUTOR, next(iter(spec.about.executors), ""))
    other = next((name for name in spec.about.executors if name != own), "")
    return f"{spec.release}{Spec('', tuple({**spec.options, EXECUTOR: other}.items()))}" if other else ""


def names_of(targets: Iterable[str]) -> dict[str, str]:
    """Return the name of the compiler of each of `targets` (specs), without version and options."""
    return {target: parse_target(target).about.name for target in targets}


def frames_of(targets: Iterable[str]) -> dict[str, str]:
    """Return the rewrite rules of all `targets` (specs), each with the pass that applies it."""
    faces = [parse_target(target).about for target in targets]
    return {rule: frame for face in faces for frame, rules in face.rules.items() for rule in rules}


def narrowing(targets: Iterable[str]) -> dict[str, str]:
    """Return the types for which any of `targets` (specs) uses a narrower one by design, with the narrowest of
    these."""
    found: dict[str, str] = {}
    for target in targets:
        for wide, narrow in parse_target(target).about.narrowed.items():
            if wide not in found or DTYPES[narrow].storage.itemsize < DTYPES[found[wide]].storage.itemsize:
                found[wide] = narrow
    return found


def second_implementations(accused: str = "") -> Iterator[str]:
    """Yield the compilers that give a second opinion when another compiler disagrees with onnx's reference
    evaluator.

    The evaluator has bugs of its own (older operator sets, Loop), and it is not the standard. It also runs models
    that the standard does not require compilers to accept. Compilers that are not installed, and the disagreeing
    compiler, are omitted; the order is that of `About.second_implementation`.
    """
    able = [(face.second_implementation, face) for face in faces() if face.second_implementation is not None]
    for _, face in sorted(able, key=lambda one: one[0]):
        if face.name != accused and all(installed(one) is not None for one in face.distributions):
            yield face.name
