"""How often a compiler's own tests use each operator (Num_DLC in OPERA), as data with provenance.

The data is in `counts-<library>.json` in the compiler's folder. `python -m evaluation.opera.counting` makes it of a
checkout of the compiler's repository.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.targets.registry import parse_target

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of counts: a repository at a commit of a date, the number of files, and the command.

    `suite` says which version of onnx the cases of its node suite are from and how many of them are run, empty when
    the compiler's tests do not run it.
    """

    repository: str
    commit: str
    date: str
    files: int
    command: str
    suite: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Counts:
    """Uses of a library's operators in a compiler's own tests, by `score.key_of`.

    `uses` are those in the compiler's repositories, `suite` the cases of onnx's own node suite that its
    tests run.
    """

    compiler: str
    library: str
    sources: tuple[Source, ...]
    uses: Mapping[str, int]
    suite: Mapping[str, int]

    def total(self) -> Mapping[str, int]:
        """Return all uses."""
        return Counter(self.uses) + Counter(self.suite)


def counts_of(target: str, library: str) -> Mapping[str, int]:
    """Return all uses of the library's operators in the tests of the compiler that the spec `target` names.

    Empty when they have not been counted: then every operator counts as tested once. Data of one version of a compiler
    serves for all.
    """
    package = parse_target(target).about.package
    file = resources.files(package).joinpath(f"counts-{library}.json")
    return from_json(json.loads(file.read_text("utf-8"))).total() if file.is_file() else {}


def from_json(data: Mapping[str, Any]) -> Counts:
    """Return the counts of a JSON object. Raises UsageError for other data."""
    try:
        if data["schema"] != SCHEMA:
            raise UsageError(f"these counts have schema {data['schema']}, this miscompile reads {SCHEMA}; count anew")
        sources = tuple(Source(**source) for source in data["sources"])
        uses, suite = ({str(key): int(data[part][key]) for key in data[part]} for part in ("uses", "suite"))
        return Counts(str(data["compiler"]), str(data["library"]), sources, uses, suite)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"the file holds no counts ({type(error).__name__}: {error})") from None
