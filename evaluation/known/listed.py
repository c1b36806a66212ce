"""The list of public bugs in `bugs.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("bugs.toml")


@dataclass(frozen=True, slots=True)
class MendedBug:
    """A public bug: release `has_it` of `target` has it, `fixed_in` has not. `operators` are those of its trigger.

    `part` is the part of the compiler, such as fusion or kernel; `culprit` the pass or the operator, empty if it is not
    known. `kind` is one of `evaluation.bugs.page.CLASSES`.
    """

    target: str
    link: str
    has_it: str
    fixed_in: str
    kind: str
    part: str
    culprit: str
    cause: str
    operators: tuple[str, ...]
    shown: bool

    @property
    def name(self) -> str:
        """The target with the number of the report, such as `onnxruntime#27833`, or the beginning of a commit."""
        return f"{self.target}#{self.link.rstrip('/').rpartition('/')[-1][:12]}"


def listed(file: Path = FILE) -> tuple[MendedBug, ...]:
    """Return the bugs in a file. Raises KeyError for an incomplete entry."""
    return tuple(
        MendedBug(
            one["target"], one["link"], one["has_it"], one["fixed_in"], one["class"], one["part"],
            one.get("culprit", ""), one["cause"], tuple(one["operators"]), bool(one.get("shown")),
        )
        for one in tomllib.loads(file.read_text("utf-8"))["bug"]
    )  # fmt: skip


def of(bugs: Sequence[MendedBug], target: str, releases: Sequence[str]) -> list[MendedBug]:
    """Return the bugs of a target, of some releases only if any are named."""
    return [bug for bug in bugs if bug.target == target and (not releases or bug.has_it in releases)]
