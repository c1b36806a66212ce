"""The result of a bounded run in CI: its findings beside a baseline of known bugs.

JUnit, SARIF and the annotations of GitHub are three renderings of this one value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from miscompile.base.digest import digest_bytes
from miscompile.base.wording import counted


@dataclass(frozen=True, slots=True)
class CiFinding:
    """A finding of a run in CI. `new` when the baseline lacks it, or has it as fixed in the release under test.

    `signature` is that of all releases, as the ledger prints it. `folder` is the finding's folder as the user named it,
    with `/`; `issue` is its issue text. `link` is the upstream issue of a known bug (empty: none).
    """

    identifier: str
    signature: str
    kind: str
    status: str
    message: str
    new: bool
    folder: str
    culprits: tuple[str, ...] = ()
    nodes: int = 0
    regression: str = ""
    link: str = ""
    issue: str = ""

    @property
    def title(self) -> str:
        """One line for lists: what is wrong, and what is to blame."""
        words = {
            "wrong": "wrong result",
            "special": "wrong result on special values",
            "cost": "time or memory out of proportion",
            "refused-form": "refused form",
            "death": "crash",
            "exception": "unexpected exception",
        }
        first = next(iter(self.message.splitlines()), "")[:160]
        blamed = " + ".join(self.culprits) or first or self.signature
        again = f" (fixed in {self.regression} before)" if self.regression else ""
        return f"{words.get(self.kind, self.kind)}: {blamed}{again}"

    @property
    def fingerprint(self) -> str:
        """A digest of the signature, the same in every run and release."""
        return digest_bytes(self.signature.encode("utf-8", "backslashreplace"), length=32)


@dataclass(frozen=True, slots=True)
class CiResult:
    """A run in CI: `tests` ended and `judged` of them had a verdict; `untested` says why it proves nothing.

    `shard` is `1/1` for a whole run. `baseline` is the file of the baseline as the user named it (empty: none).
    """

    target: str
    versions: tuple[tuple[str, str], ...]
    seed: int
    shard: str
    tests: int
    judged: int
    seconds: float
    untested: str
    findings: tuple[CiFinding, ...]
    baseline: str = ""

    @property
    def new(self) -> Sequence[CiFinding]:
        """The findings that the baseline lacks."""
        return [one for one in self.findings if one.new]

    @property
    def verdict(self) -> str:
        """One line for people."""
        known = len(self.findings) - len(self.new)
        new = counted(len(self.new), "new finding")
        told = f"{self.judged:,} of {counted(self.tests, 'test')} judged, {new}, {known} known"
        return f"{told}; nothing was tested: {self.untested}" if self.untested and not self.new else told
