"""The transforms that TVM's adapter applies by itself: splicing a pattern of a library, and wrapping into functions.

Unlike all other transforms, splicing changes the results of the program. An oracle may therefore only compare builds
with the same transform, and must measure the sensitivity to rounding on the spliced program: with `noise` the adapter
instruments that program with noise, and takes a last input, the number of the noise (`noise.py`). The position of
the pattern is then the same in the noisy program.
"""

import hashlib
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_options, spec_of

SPLICE = "splice"
"""The transform's name in `Build.transform`."""

ENDING = ".relax.json"
"""The suffix of a library's files. Each contains an object: `name`; `digest`, the structural hash of its module;
`script` and `constants`, the module as `text.py` encodes it, with the function `pattern`; `passes` that changed a
module with the pattern in TVM's own tests, and `wakes`, those that change it when they run alone; `granularity`;
`origin`, a test; `operators`, and the types of `holes` and `outputs`."""


_FIELDS = frozenset({
    "name", "digest", "granularity", "passes", "wakes", "origin", "operators", "holes", "outputs", "script",
    "constants",
})  # fmt: skip

MOST = 8
"""The most patterns in one program; with more, little of the program is left."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Options of `splice.splice_all`; prints and parses as `splice{library=lib, name=FuseOps-1a2b3c4d, seed=3}`.

    `library` is a folder of patterns. Without a `name`, or several with + between them, the seed draws `count` of them.
    `digest` are those of the patterns' texts (`digest_of`): with them another pattern of the same name is an error, so
    that a finding always refers to the same program. With `call` patterns are private functions that are called. With
    `noise` the program computes with noise, which the oracle requests.
    """

    library: str = ""
    name: tuple[str, ...] = ()
    digest: tuple[str, ...] = ()
    seed: int = 0
    count: int = 1
    call: bool = False
    noise: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError without a library, and for an invalid count or digest."""
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
    """Return a transform of the adapter with the full path of its library, and with the pattern that its seed
    selects.

    This keeps the selected pattern fixed when the library grows, moves or is generated again, and when the working
    directory changes. Raises SpecError for other options, and for a library that is missing, is empty, or lacks this
    pattern.
    """
    relax_options(transform)
    options = splice_options(transform)
    if options is None:
        return transform
    seeded = bool(transform.get("seed"))
    options = replace(options, library=located(options.library))
    found = chosen(options)
    if not options.name and not seeded:
        for one in names(options.library):  # a campaign may select any of them hours later
            entry(options.library, one)
    path = options.library
    if not set(path).isdisjoint(",{}"):
        raise SpecError(f"no spec can say the path {path}; move the library to one without , {{ and }}")
    if options.name or seeded:
        known = tuple(one["name"] for one in found)
        options = replace(options, name=known, digest=tuple(map(digest_of, found)), count=1)
    return spec_of(SPLICE, options)


def located(library: str) -> str:
    """Return the full path of a library, which may be named by the folder of its harvest."""
    path = Path(library).absolute()
    inner = path / "library"
    return str(inner if inner.is_dir() and not any(path.glob(f"*{ENDING}")) else path)


def digest_of(found: Mapping[str, Any]) -> str:
    """Return the digest of the parts of a pattern's text that determine its results."""
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
    """Return the contents of one pattern's file. Raises SpecError when the pattern is missing or its file is
    damaged."""
    try:
        return read_entry(Path(library) / f"{name}{ENDING}")
    except (OSError, ValueError) as error:
        raise SpecError(f"{library} has no pattern '{name}': {error}; remove that file") from None


def read_entry(file: Path) -> Mapping[str, Any]:
    """Return the contents of a pattern's file. Raises OSError, and ValueError for a damaged file."""
    found = json.loads(file.read_text("utf-8"))
    if not isinstance(found, dict) or not _FIELDS.issubset(found):
        raise ValueError("the file is not one of a pattern")
    return found


def chosen(splice: Splice) -> tuple[Mapping[str, Any], ...]:
    """Return the patterns that a transform names, or that its seed selects.

    Raises SpecError when the library lacks one, or when the digest of its text differs from that in the transform.
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


WRAP = "relax"
"""The transform's name in `Build.transform`."""


@dataclass(frozen=True, slots=True)
class Relax:
    """Options of `functions.wrap`, where they are described; prints and parses as `relax{seed=3, rewrite=closure}`."""

    seed: int = 0
    count: int = 2
    depth: int = 2
    rewrite: Literal["none", "forward", "closure", "factory", "any"] = "any"

    def __post_init__(self) -> None:
        """Raise SpecError for options that leave nothing to wrap."""
        if self.count < 1 or self.depth < 1:
            raise SpecError("count and depth must be at least 1")


def relax_options(transform: Spec | None) -> Relax | None:
    """Return the options of a transform `relax{...}`, None for any other.

    Raises SpecError for unknown options.
    """
    if transform is None or transform.name != WRAP:
        return None
    return parse_options(Relax, dict(transform.options), WRAP)
