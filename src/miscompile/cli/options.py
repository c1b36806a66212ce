"""What the command line asks for, as values; calling comes later (`calls`)."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import UsageError

SESSION_ONLY = frozenset({"target", "seconds", "tests", "seed", "out", "workers", "resume"})
"""Fields that each session chooses anew; a resumed campaign keeps all others unless they are given again."""

DEFAULT_SECONDS = 300.0
MIN_OPSET = 13


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """Options of `fuzz`; None and `()` leave a choice to the generator.

    `seconds` and `tests` limit this session (None: no limit), `limit_seconds` and `limit_memory` (bytes) one run.
    `nodes` is the number of operators aimed at, `motifs` a probability. `quarantine` switches guilty passes off.
    """

    target: str
    seconds: float | None = DEFAULT_SECONDS
    tests: int | None = None
    seed: int = 0
    out: Path = Path("miscompile-out")
    workers: int = 1
    resume: bool = False
    producers: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    max_rank: int | None = None
    max_dim: int | None = None
    nodes: int | None = None
    motifs: float | None = None
    guidance: bool | None = None
    opset: int | None = None
    quarantine: bool = True
    compare: Literal["strict", "fixed"] = "strict"
    limit_seconds: float = 30.0
    limit_memory: int | None = None

    def remembered(self) -> dict[str, Any]:
        """Return the options that a resumed campaign takes over, as JSON values."""
        return {name: value for name, value in asdict(self).items() if name not in SESSION_ONLY}

    def resumed(self, stored: Mapping[str, Any], given: Collection[str]) -> "FuzzOptions":
        """Return these options with `stored` ones in place of those that are not in `given`."""
        names = {field.name for field in fields(self)} - SESSION_ONLY - set(given)
        values = {name: _tuples(stored[name]) for name in names if name in stored}
        return replace(self, **values)


def limits_of_time(seconds: float | None, tests: int | None) -> float | None:
    """Return the time limit in seconds: five minutes by default, none for 0 or when only tests are limited."""
    if seconds is None:
        return DEFAULT_SECONDS if tests is None else None
    return seconds or None


def new_seed() -> int:
    """Return a seed from the operating system's entropy."""
    return secrets.randbits(32)


def check_generation(options: FuzzOptions) -> None:
    """Raise UsageError when an operator, dtype or opset of `options` cannot be meant."""
    from miscompile.ops.registry import specs
    from miscompile.targets.registry import parse_target

    _known("operator", options.ops, specs(), "`miscompile targets --matrix` lists them")
    _known("dtype", options.dtypes, PLAIN, f"there are: {', '.join(PLAIN)}")
    highest = parse_target(options.target).about.max_opset
    if options.opset is not None and not MIN_OPSET <= options.opset <= highest:
        raise UsageError(f"--opset {options.opset}: {options.target} is tested with opsets {MIN_OPSET} to {highest}")


def check_out(out: Path, *, resume: bool) -> None:
    """Raise UsageError unless OUT is new for a new campaign, or holds one to resume."""
    holds = (out / "miscompile.db").exists() or (out / "findings").is_dir()
    if resume and not holds:
        raise UsageError(f"there is no campaign in {out} to resume; leave --resume out to start one")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; choose another --out")
    if holds and not resume:
        raise UsageError(f"{out} already holds a campaign; continue it with --resume or choose another --out")
    if not resume and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty and holds no campaign; choose another --out")


def _known(what: str, names: Collection[str], known: Collection[str], hint: str) -> None:
    lower = {name.lower(): name for name in known}
    for name in names:
        if name not in known:
            meant = lower.get(name.lower())
            raise UsageError(f"there is no {what} '{name}'; " + (f"did you mean {meant}?" if meant else hint))


def _tuples(value: Any) -> Any:  # noqa: ANN401 - JSON has lists where options have tuples
    return tuple(value) if isinstance(value, list) else value
