"""The options of a migration, as one frozen value that the store records."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from miscompile.execution.limits import Limits
from miscompile.findings.ledger import LEDGER
from miscompile.oracles.judge import CompareRule
from miscompile.targets.front_ends import FrontEnd

ORDERS = ("opera", "operators", "parameters", "random")
"""Names of the orders in `ranking.order`, which is only imported for ranking."""

DEFAULT_ORDER = ORDERS[0]


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Options of `miscompile migrate`.

    `seconds` and `tests` limit each front end (None: all of its tests). `constants` makes all tensors but the first a
    part of the program, as OPERA's templates do. `instances` are archives that replace those harvested on this machine;
    `operators` names the only operators to test. `confirm` is the number of tests of one conversion function to try
    until the script of one shows the failure, `patience` the time limit of triage in seconds; the other findings stay
    pending, and a resumed migration triages them. `ledger` is the file of the ledger of bugs, empty for that in `out`.
    """

    fronts: tuple[FrontEnd, ...]
    out: Path
    seed: int = 0
    order: str = DEFAULT_ORDER
    seconds: float | None = None
    tests: int | None = None
    level: str = "full"
    compare: CompareRule = "strict"
    constants: bool = False
    instances: tuple[Path, ...] = ()
    operators: tuple[str, ...] = ()
    workers: int = 1
    limit_seconds: float = 60.0
    limit_memory: int | None = None
    confirm: int = 3
    patience: float = 600.0
    resume: bool = False
    model: str | None = None
    ledger: str = ""

    @property
    def title(self) -> str:
        """The front ends, for tables and stores."""
        return " ".join(front.target for front in self.fronts)

    @property
    def ledger_file(self) -> Path:
        """The file of the ledger of bugs."""
        return Path(self.ledger) if self.ledger else self.out / LEDGER

    @property
    def limits(self) -> Limits:
        """Limits of a run. Libraries and their exporters take more memory than a compiler alone."""
        memory = 8 << 30 if self.limit_memory is None else self.limit_memory
        return Limits(seconds=self.limit_seconds, memory=memory)

    def remembered(self) -> dict[str, Any]:
        """Return the options that a resumed migration must share, as JSON values."""
        return {
            "migration": True,
            "targets": [front.target for front in self.fronts],
            "libraries": [front.library for front in self.fronts],
            "order": self.order,
            "level": self.level,
            "compare": self.compare,
            "constants": self.constants,
            "instances": [str(path) for path in self.instances],
            "operators": list(self.operators),
            "ledger": self.ledger,
        }

    def resumed(self, options: Mapping[str, Any]) -> "MigrationPlan":
        """Return this plan with the options that the campaign was started with."""
        return replace(
            self,
            order=options["order"],
            level=options["level"],
            compare=options["compare"],
            constants=options["constants"],
            instances=tuple(Path(path) for path in options["instances"]),
            operators=tuple(options["operators"]),
            ledger=self.ledger or options.get("ledger", ""),
        )
