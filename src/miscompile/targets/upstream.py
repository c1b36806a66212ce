"""What a target needs to write a test of a finding in the form of its own repository (`About.upstream`)."""

from dataclasses import dataclass

from miscompile.core.tensor import Tensor
from miscompile.core.verdict import FindingKind


@dataclass(frozen=True, slots=True)
class UpstreamStory:
    """A finding as a target sees it that writes a test of it.

    `payload` is the program, `feed` its inputs in order. `expected` are the right outputs, None where no build or
    reference has computed them. `level` and `off` are those of the faulty build, `kind` says what it does wrong,
    `stage` where (`compile`, `run`, or empty), and `name` is a name for the test.
    """

    payload: bytes
    feed: tuple[Tensor, ...]
    expected: tuple[Tensor, ...] | None
    level: str
    off: tuple[str, ...]
    kind: FindingKind
    stage: str
    name: str
