"""The settings of triage: the folder of the findings, the targets and their comparison, and the limits of runs."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from miscompile.core.pool import Pool
from miscompile.execution.limits import Limits
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.pool import LocalPool
from miscompile.oracles.judge import CompareRule
from miscompile.oracles.kinds import OracleContext
from miscompile.transforms.runner import TransformingRunner

CAREFUL = "careful"
"""The word behind an identifier that asks a triage worker to try onnx's calls in forks first."""


@dataclass(frozen=True, slots=True)
class TriageSettings:
    """`out` is the campaign's folder, `targets` are its target specs, `rule` is its comparison of values.

    `seconds` limits the reduction of one finding (None: by the compiler's speed), `script_seconds` a run of a
    standalone script.
    """

    out: Path
    targets: tuple[str, ...]
    seed: int = 0
    rule: CompareRule = "strict"
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None
    script_seconds: float = 120.0

    @property
    def context(self) -> OracleContext:
        """The facts of the campaign that the oracles of its findings need."""
        return OracleContext(self.targets, self.rule)

    def pool(self) -> Pool:
        """Return a pool for the targets, which opens the pool of any other target at its first run."""
        return TransformingRunner(MultiTargetPool(self.targets[:1], lambda target: LocalPool(target, 1, self.limits)))

    def as_json(self) -> str:
        """Print the settings in one line for a triage worker."""
        return json.dumps({**asdict(self), "out": str(self.out)})


def settings_from(text: str) -> TriageSettings:
    """Read back what `TriageSettings.as_json` printed."""
    data: dict[str, Any] = json.loads(text)
    data["out"], data["targets"], data["limits"] = Path(data["out"]), tuple(data["targets"]), Limits(**data["limits"])
    return TriageSettings(**data)
