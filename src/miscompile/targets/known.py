"""`known.toml`: a target's expected rejections and known bugs, as data with links.

[[rejection]]
status = "unsupported"            # "rejected": lawful even when another build accepts the program
pattern = "Could not find an implementation for"   # regular expression, searched in "Kind: message"
reason = "no kernel for this operator and type"
lawful = true                     # optional: in whatever form the call is, as for a list in the documentation

extends = "miscompile.targets.optimisers"            # a package whose known.toml holds here as well

[[bug]]
signature = "onnxruntime:wrong:MatMulAddFusion"      # prefix of a finding's signature; "$" at its end: the whole
link = "https://github.com/..."
note = "what is wrong, in a line"
message = "axis -1 is not in valid range"            # optional: searched in the finding's message
operators = ["LayerNormalization"]                   # optional: all of them are in its reduced program

[bug.pattern]                                        # optional: its reduced program contains these nodes and values,
nodes = [{op = "Resize", inputs = ["x"], outputs = ["y"], attributes = {mode = "cubic"}}]
values = {x = {rank = 4}}                            # with the keys of a bug predicate (`triage/predicate.py`)

[[policy]]
class = "zero-sign"                                  # of results on special values (`oracles/special.py`)
status = "declined"                                  # or "accepted": the developers take such differences for bugs
link = "https://github.com/..."
note = "what the developers said, in a line"
operators = ["Relu"]                                 # optional: one of them is in the program

One pass may have several bugs of one signature, and a link holds for one of them. Where the signature names passes,
state a `message`, `operators` or a `pattern` as well, or an unknown bug of the pass counts as known. Where it ends with
a digest, a `pattern` and a shorter signature know the bug in other programs too, and tests are steered past it.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from miscompile.base.errors import SpecError
from miscompile.targets.registry import about

_VERSION = re.compile(r"==[^:{]*", re.ASCII)
"""The version in a signature, which is removed because a bug is the same in all releases; settings remain."""


ProgramPattern = Mapping[str, Any]
"""The conditions on a program by which a bug is known: `nodes` and `values` as in a bug predicate's JSON object."""


def _nothing(pattern: ProgramPattern) -> bool:
    del pattern
    return False


_LONGER = re.compile(r"\w*[+>]", re.ASCII)
"""The text after a prefix that ends inside a longer set of passes or chain of operators, which is another bug."""


@dataclass(frozen=True, slots=True)
class Rejection:
    """An expected rejection: messages that match `pattern` are not bugs.

    Unless it is `lawful`, users take it for a bug where another form of the same call is not rejected.
    """

    status: Literal["unsupported", "rejected"]
    pattern: "re.Pattern[str]"
    reason: str
    lawful: bool = False


@dataclass(frozen=True, slots=True)
class KnownBug:
    """A bug with an upstream issue, which is counted but not reported again.

    A finding is this bug if its signature begins with `signature`, its message contains a match of `message`, and its
    reduced program has all `operators` and contains the `pattern`.
    """

    signature: str
    link: str
    note: str
    message: "re.Pattern[str] | None" = None
    operators: frozenset[str] = frozenset()
    pattern: ProgramPattern | None = None

    def covers(
        self,
        signature: str,
        message: str = "",
        operators: Iterable[str] = (),
        contains: Callable[[ProgramPattern], bool] = _nothing,
    ) -> bool:
        """Tell whether a finding is the bug; `contains` tells whether its reduced program contains a pattern."""
        if self.message is not None and not self.message.search(message):
            return False
        if not self.operators.issubset(operators):
            return False
        return self._signs(signature) and (self.pattern is None or contains(self.pattern))

    def _signs(self, signature: str) -> bool:
        if self.signature.endswith("$"):
            return signature == self.signature[:-1]
        rest = signature.removeprefix(self.signature)
        return signature.startswith(self.signature) and not _LONGER.match(rest)


@dataclass(frozen=True, slots=True)
class Policy:
    """What the developers of a target say about a class of wrong results on special values.

    It holds for programs with one of `operators`, or for all if there are none. Declined ones are counted, not stored.
    """

    special: str
    status: Literal["accepted", "declined"]
    link: str
    note: str
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Known:
    """The expected rejections and known bugs of one target, and its policies about special values."""

    rejections: tuple[Rejection, ...]
    bugs: tuple[KnownBug, ...]
    policies: tuple[Policy, ...] = ()

    def beside(self, other: "Known") -> "Known":
        """Return the expectations of both, those of `other` last."""
        return Known(self.rejections + other.rejections, self.bugs + other.bugs, self.policies + other.policies)

    def policy(self, special: str, operators: Iterable[str]) -> Policy | None:
        """Return the first policy about a class of special values in a program of `operators`, None without one."""
        held = frozenset(operators)
        fitting = (
            one for one in self.policies if one.special == special and (not one.operators or one.operators & held)
        )
        return next(fitting, None)

    def rejection(self, kind: str, message: str) -> Rejection | None:
        """Return the first rejection that matches an error of class `kind`, None when it is unexpected."""
        text = f"{kind}: {message}"
        return next((entry for entry in self.rejections if entry.pattern.search(text)), None)

    def bug(
        self,
        signature: str,
        message: str = "",
        operators: Iterable[str] = (),
        contains: Callable[[ProgramPattern], bool] = _nothing,
    ) -> KnownBug | None:
        """Return the known bug that a finding is, None when it is new.

        `operators` are those of its reduced program; `contains` tells whether that contains a pattern.
        """
        held = frozenset(operators)
        plain = _VERSION.sub("", signature, count=1) if "==" in signature.partition(":")[0] else signature
        return next((entry for entry in self.bugs if entry.covers(plain, message, held, contains)), None)


def known(target: str, via: str = "") -> Known:
    """Read the expectations of the target called `target`, as `known_in` does for its package.

    Raises SpecError for an unknown target as well.
    """
    return known_in(about(target).package, via)


@cache
def known_in(package: str, via: str = "") -> Known:
    """Read `known.toml` in `package`, after `known-<via>.toml` when a front end is named.

    Workers call this function, because they may run in an environment without the entry points of packages. Raises
    SpecError when a file is
    missing or an entry is malformed.
    """
    plain = _read(package, "known.toml")
    if not via:
        return plain
    own = _read(package, f"known-{via}.toml")
    return own.beside(plain)


def _read(package: str, name: str) -> Known:
    try:
        data = tomllib.loads(files(package).joinpath(name).read_text("utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{package} has no {name}; an empty file says that nothing is expected") from None
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SpecError(f"{name} of {package} cannot be read: {error}") from None
    try:
        rejections = tuple(
            Rejection(
                entry["status"],
                re.compile(entry["pattern"], re.DOTALL),
                entry["reason"],
                entry["status"] == "rejected" or bool(entry.get("lawful", False)),
            )
            for entry in data.get("rejection", ())
        )
        bugs = tuple(map(_bug, data.get("bug", ())))
        policies = tuple(map(_policy, data.get("policy", ())))
    except (KeyError, ValueError, re.error) as error:
        raise SpecError(f"{name} of {package} is malformed: {error}") from None
    known = Known(rejections, bugs, policies)
    return known if "extends" not in data else known.beside(_read(data["extends"], "known.toml"))


def _bug(entry: Mapping[str, Any]) -> KnownBug:
    message = re.compile(entry["message"], re.DOTALL) if "message" in entry else None
    operators, pattern = frozenset(entry.get("operators", ())), entry.get("pattern")
    if pattern is not None and not pattern.keys() <= {"nodes", "values"}:
        raise ValueError(f"a pattern has nodes and values, not {', '.join(pattern)}")
    return KnownBug(entry["signature"], entry["link"], entry["note"], message, operators, pattern)


def _policy(entry: Mapping[str, Any]) -> Policy:
    if entry["status"] not in ("accepted", "declined"):
        raise ValueError(f"a policy is accepted or declined, not {entry['status']}")
    operators = frozenset(entry.get("operators", ()))
    return Policy(entry["class"], entry["status"], entry["link"], entry["note"], operators)
