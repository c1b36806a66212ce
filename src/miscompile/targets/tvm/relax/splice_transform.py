"""The transform by which TVM's adapter splices a pattern of a library into the imported program.

Unlike all other transforms it computes something else than the case's own program. So what is built of it is to be held
against another build of the same transform alone, and its sensitivity to rounding is that of the spliced program: with
`noise` the adapter weaves noise into that one, and takes a last input, a number that tells which noise (`noise.py`).
That way nothing depends on where a pattern would come to stand in another program.
"""

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_options, spec_of
from miscompile.targets.tvm.relax.wrap_transform import relax_options

SPLICE = "splice"
"""The transform's name in `Build.transform`."""

ENDING = ".relax.json"
"""How the names of a library's files end. Each is an object: `name`; `digest`, the structural hash of its module;
`script` and `constants`, the module, as `text.py` says it, with the function `pattern`; `passes` that changed a
module with the pattern in TVM's own tests, and `wakes`, those that change it when they run alone; `granularity`;
`origin`, a test; `operators`, and the types of `holes` and `outputs`."""


_FIELDS = frozenset({
    "name", "digest", "granularity", "passes", "wakes", "origin", "operators", "holes", "outputs", "script",
    "constants",
})  # fmt: skip

MOST = 8
"""Patterns that may be spliced into one program: with more of them there is little left of the program."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Options of `splice.splice_all`; prints and parses as `splice{library=lib, name=FuseOps-1a2b3c4d, seed=3}`.

    `library` is a folder of patterns. Without a `name`, or several with + between them, the seed draws `count` of them.
    `digest` are those of the patterns' texts (`digest_of`): with them no other pattern of the same name will do, so
    that a finding means the same program for ever. With `call` patterns are private functions that are called. With
    `noise` the program computes with noise, for whoever judges it.
    """

    library: str = ""
    name: tuple[str, ...] = ()
    digest: tuple[str, ...] = ()
    seed: int = 0
    count: int = 1
    call: bool = False
    noise: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError without a library, and for numbers that leave nothing to splice."""
        if not 1 <= self.count <= MOST:
            raise SpecError(f"count must be from 1 to {MOST}")
        if self.digest and len(self.digest) != len(self.name):
            raise SpecError("each name needs its digest, or none")
        if not self.library:
            raise SpecError(f"{SPLICE} needs library=FOLDER, as the harvest of TVM's tests makes it")


def splice_options(transform: Spec | None) -> Splice | None:
    """Return the options of a transform `splice{...}`, None for any other.

    Raises SpecError for unknown options, and without a library.
    """
    if transform is None or transform.name != SPLICE:
        return None
    return parse_options(Splice, dict(transform.options), SPLICE)


def settled(transform: Spec) -> Spec:
    """Return a transform of the adapter with the full path of its library, and if it has a seed with its pattern.

    A library may grow, move or be made anew, and a relative path means another folder elsewhere; what was drawn stays.
    Raises SpecError for other options, for a library that is not there, is empty, or has not this very pattern.
    """
    relax_options(transform)
    options = splice_options(transform)
    if options is None:
        return transform
    seeded = bool(transform.get("seed"))
    options = replace(options, library=located(options.library))
    found = chosen(options)
    if not options.name and not seeded:
        for one in names(options.library):  # a campaign may draw any, hours later
            entry(options.library, one)
    path = options.library
    if not set(path).isdisjoint(",{}"):
        raise SpecError(f"no spec can say the path {path}; move the library to one without , {{ and }}")
    if options.name or seeded:
        known = tuple(one["name"] for one in found)
        options = replace(options, name=known, digest=tuple(map(digest_of, found)), count=1)
    return spec_of(SPLICE, options)


def located(library: str) -> str:
    """Return the full path of a library, which may be named by the folder of the harvest that it lies in."""
    path = Path(library).absolute()
    inner = path / "library"
    return str(inner if inner.is_dir() and not any(path.glob(f"*{ENDING}")) else path)


def digest_of(found: Mapping[str, Any]) -> str:
    """Return the digest of a pattern's text, all by which it decides what is computed."""
    text = json.dumps([found["script"], found["constants"]], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def names(library: str) -> tuple[str, ...]:
    """Return the names of a library's patterns, in order. Raises SpecError where there are none."""
    found = tuple(sorted(file.name.removesuffix(ENDING) for file in Path(library).glob(f"*{ENDING}")))
    if not found:
        raise SpecError(f"{library} holds no patterns (*{ENDING})")
    return found


@lru_cache(256)
def entry(library: str, name: str) -> Mapping[str, Any]:
    """Return what the file of one pattern holds. Raises SpecError where there is no such pattern, or a damaged file."""
    try:
        return read_entry(Path(library) / f"{name}{ENDING}")
    except (OSError, ValueError) as error:
        raise SpecError(f"{library} has no pattern '{name}': {error}; remove that file") from None


def read_entry(file: Path) -> Mapping[str, Any]:
    """Return what a pattern's file holds. Raises OSError, and ValueError for a file that is damaged."""
    found = json.loads(file.read_text("utf-8"))
    if not isinstance(found, dict) or not _FIELDS.issubset(found):
        raise ValueError("the file is not one of a pattern")
    return found


def chosen(splice: Splice) -> tuple[Mapping[str, Any], ...]:
    """Return the patterns that a transform names, or that its seed draws.

    Raises SpecError where the library lacks one, or where its text has another digest than the transform says.
    """
    listed = names(splice.library)
    further = random.Random(splice.seed).choices(listed, k=splice.count - 1)
    drawn = splice.name or (listed[splice.seed % len(listed)], *further)
    found = tuple(entry(splice.library, name) for name in drawn)
    for one, digest in zip(found, splice.digest or ("",) * len(found), strict=True):
        if digest not in ("", digest_of(one)):
            raise SpecError(
                f"the pattern '{one['name']}' in {splice.library} is not the one that was spliced (its text has the"
                f" digest {digest_of(one)}, not {digest}); bring back that library, or run the finding's script, which"
                " has the pattern in it"
            )
    return found


def spelled(transform: Spec) -> str:
    """Return Python source that defines `patterns()`, the modules of the patterns of a transform, and how to splice
    them.

    It needs `text.parse`. Raises SpecError as the functions above do.
    """
    options = splice_options(transform)
    assert options is not None, "only asked for this transform"
    told = [_told(found) for found in chosen(options)]
    call = f'SPLICE = {{"seed": {options.seed}, "call": {options.call}}}\n'
    return f"PATTERNS = [\n{''.join(told)}]\n{call}{_PARSE}"


def _told(found: Mapping[str, Any]) -> str:
    """Return a pattern as an item of a Python list: its text and its constants."""
    rows = "".join(f"            {json.dumps(one)},\n" for one in found["constants"])
    table = f"[\n{rows}        ]" if rows else "[]"
    return (
        f"    # From {found['origin']} of TVM, a test of {', '.join(found['passes'])}.\n"
        f'    (\n        """\n{found["script"]}\n""",\n        {table},\n    ),\n'
    )


_PARSE = '''

def patterns():
    """Return the modules of the patterns."""
    return [parse(script, constants) for script, constants in PATTERNS]
'''
