"""The plan of a campaign: all of its options, as one value that is sent to the lanes."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from onnx.defs import onnx_opset_version

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.specs import Spec, parse_options, parse_spec
from miscompile.engine.checks import chosen, producers_for
from miscompile.execution.limits import Limits
from miscompile.findings.ledger import LEDGER
from miscompile.findings.store import own_folder
from miscompile.producers.kinds import PRODUCERS, ProducerKind
from miscompile.producers.options import GeneratorOptions
from miscompile.targets.registry import faces, narrowing, parse_target, settled_transform
from miscompile.transforms.catalogue import SEEDLESS, UNEQUAL, transform_of

_RENAMED = {"forms": "transforms", "quarantine": "steer"}
"""Former names of options in stored campaigns."""

SESSION_ONLY = frozenset(
    {
        "target",
        "others",
        "seconds",
        "tests",
        "seed",
        "out",
        "workers",
        "resume",
        "probe_seconds",
        "limit_disk",
        "number",
        "triage_seconds",
    }
)
"""Fields that each session sets anew; a resumed campaign keeps all others unless they are given again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a campaign. None and `()` stand for the defaults.

    With `others`, several targets are compared with each other instead of builds of one target.

    `checks` are names of `engine.checks` (none: the default ones), `transforms` are specs of further transforms of
    programs, `device` is compared with the CPU, `patterns` is a file of patterns to plant in seeds, or a folder of
    patterns that only the target's adapter can plant (`About.library`). `seconds` and `tests` limit this session (None:
    no limit); `limit_seconds` and `limit_memory` (bytes) limit one run, `limit_disk` (bytes) the folder; `steer` steers
    tests past known bugs. `model` is the path of a user's model to test instead of generated programs, with `slices`
    also its slices. `seed_models` is a folder of models whose slices, of `slice_nodes` nodes (least, most), are seeds
    of generated programs; `instances` is an archive of operator instances (`onnx`: those of onnx's own tests) that are
    seeds in the same way; `corpus` are the names of models of the corpus whose slices are seeds. `probe_seconds`
    limits the capability probe at the start of a session.
    `ledger` is the file of the ledger of bugs (None: `ledger.db` in `out`).
    `number` is that of the campaign in the store in `out`; 0: a new one beside others.
    With `schedule`, all techniques and checks that the other options leave are arms among which the scheduler divides
    the time; otherwise the producers have fixed shares. `triage_seconds` limits the triage after the last test.
    """

    target: str
    others: tuple[str, ...] = ()
    seconds: float | None = 300.0
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
    steer: bool = True
    compare: Literal["strict", "fixed"] = "strict"
    limit_seconds: float = 30.0
    limit_memory: int | None = None
    model: str | None = None
    slices: bool = False
    seed_models: str | None = None
    slice_nodes: tuple[int, int] = (3, 12)
    probe_seconds: float | None = 120.0
    checks: tuple[str, ...] = ()
    transforms: tuple[Spec, ...] = ()
    device: str = "cpu"
    patterns: str | None = None
    instances: str | None = None
    corpus: tuple[str, ...] = ()
    limit_disk: int | None = None
    ledger: str | None = None
    number: int = 1
    schedule: bool = False
    triage_seconds: float = 600.0

    @property
    def scheduled(self) -> bool:
        """Tell whether the scheduler divides the time among arms; producers that are named have fixed shares."""
        return self.schedule and not self.producers and self.model is None

    def alone(self, target: str) -> "Plan":
        """Return the plan of a campaign against one of the targets alone."""
        return replace(self, target=target, others=())

    @property
    def finite(self) -> bool:
        """Tell whether the campaign ends by itself, because its producer has a fixed list of tasks."""
        return bool(self._finite)

    @property
    def _finite(self) -> tuple[str, ...]:
        """The names of the producers that have a fixed list of tasks."""
        return tuple(spec.name for spec in map(parse_spec, self.producers) if PRODUCERS.get(spec.name).finite)

    @property
    def has_seeds(self) -> bool:
        """Tell whether programs are generated from seeds that the user names, or from models of the corpus."""
        return self.has_own_seeds or bool(self.corpus)

    @property
    def has_own_seeds(self) -> bool:
        """Tell whether programs are generated from seeds that the user names."""
        return self.seed_models is not None or self.instances is not None

    @property
    def targets(self) -> tuple[str, ...]:
        """All targets."""
        return (self.target, *self.others)

    @property
    def own(self) -> Path:
        """The folder of files that belong to this campaign alone: `out` itself for the first campaign in it."""
        return own_folder(self.out, self.number)

    @property
    def ledger_file(self) -> Path:
        """The file of the ledger of bugs."""
        return Path(self.ledger) if self.ledger else self.out / LEDGER

    @property
    def title(self) -> str:
        """The targets in one line, as the store records them."""
        return " ".join(self.targets)

    @property
    def narrowed(self) -> dict[str, str]:
        """The types that some target computes in a narrower type by design, with that type."""
        return narrowing(self.targets)

    @property
    def opsets(self) -> tuple[int, ...]:
        """Opsets to draw from: the chosen one, or the default ones that all targets read."""
        newest = min(onnx_opset_version(), *(parse_target(target).about.max_opset for target in self.targets))
        if self.opset is not None:
            return (self.opset,)
        return tuple(opset for opset in GeneratorOptions().opsets if opset <= newest) or (newest,)

    @property
    def blocks(self) -> tuple[int, ...]:
        """The sizes by which the kernels of the targets divide their work."""
        return tuple(sorted({size for target in self.targets for size in parse_target(target).about.blocks}))

    @property
    def limits(self) -> Limits:
        """Limits of one run."""
        limits = Limits(seconds=self.limit_seconds)
        return limits if self.limit_memory is None else replace(limits, memory=self.limit_memory)

    def options_of(self, name: str, options: Mapping[str, str], where: str) -> Any:  # noqa: ANN401 - its own dataclass
        """Return the options of the kind of producer called `name`.

        They are the options of this plan that the kind has, overridden by `options`, those of the spec that `where`
        names. Raises SpecError for an unknown kind or option.
        """
        kind = PRODUCERS.get(name)
        usual = kind.options()
        base = replace(usual, **self._choices(kind, usual))
        given = parse_options(kind.options, options, where)
        return replace(base, **{key: getattr(given, key) for key in options})

    def _choices(self, kind: ProducerKind, usual: Any) -> dict[str, Any]:  # noqa: ANN401 - the kind's own dataclass
        """Return the options of a kind that this plan sets; `usual` are the kind's defaults."""
        known = {name: getattr(self, name) for name in ("nodes", "max_rank", "max_dim", "motifs")}
        known = {name: value for name, value in known.items() if value is not None}
        known |= {"ops": self.ops, "dtypes": self.dtypes, "opsets": self.opsets, "blocks": self.blocks}
        if kind.own_opsets:
            known["opsets"] = tuple(opset for opset in self.opsets if opset in usual.opsets) or self.opsets
        if self.guidance is not None:
            known["guidance"] = kind.guided if self.guidance else "off"
        if self.patterns and not self.has_library:
            known["patterns"] = self.patterns
        names = {field.name for field in fields(usual)}
        return {name: value for name, value in known.items() if name in names}

    @property
    def chosen_checks(self) -> tuple[str, ...]:
        """The checks. Raises UsageError for one that is unknown, or that a target does not support."""
        asked = self.checks or (("all",) if self.scheduled else ())
        return chosen(asked, [parse_target(target).about for target in self.targets], self.device)

    @property
    def chosen_transforms(self) -> tuple[Spec, ...]:
        """The transforms of the user, completed by all facts that determine their results (`About.settle`).

        Raises UsageError for an invalid one, and for several targets.
        """
        if self.transforms and self.others:
            raise UsageError("--transform: several compilers are held against each other as they are; name one target")
        asked = (*self.transforms, *self.library_transforms)
        for transform in asked:
            if transform.name in UNEQUAL:
                raise UsageError(f"--transform {transform.name}: nothing can be held against its results")
            if transform.name not in parse_target(self.target).about.transforms and transform not in SEEDLESS:
                transform_of(transform)
        return tuple(dict.fromkeys(settled_transform(self.target, transform) for transform in asked))

    @property
    def has_library(self) -> bool:
        """Tell whether `patterns` is a folder of patterns in the target's own representation."""
        return self.patterns is not None and Path(self.patterns).is_dir()

    @property
    def library_transforms(self) -> tuple[Spec, ...]:
        """The transforms that plant patterns of the library in programs: one pattern, one as a call, and three.

        Raises UsageError for several targets, and for one that has no library.
        """
        if not self.has_library:
            return ()
        name = parse_target(self.target).about.library
        if self.others or not name:
            takers = ", ".join(face.name for face in faces() if face.library)
            raise UsageError(
                f"--patterns: {self.patterns} is a folder, as {takers} alone takes it; name a file of patterns"
            )
        one = Spec(name).with_options(library=str(self.patterns))
        return (one, one.with_options(call="yes"), one.with_options(count="3"))

    def producer_specs(self) -> list[tuple[str, Any]]:
        """Return (name, options) of every producer. Raises SpecError for an unknown one, or one that must be alone.

        Producers of patterns are left out when operators or dtypes were chosen, because patterns have their own.
        """
        specs = [parse_spec(text) for text in self.producers or producers_for(self.chosen_checks)]
        if not self.producers and (self.ops or self.dtypes):
            specs = [spec for spec in specs if not PRODUCERS.get(spec.name).brings_patterns]
        names = {spec.name for spec in specs}
        if self.has_seeds and "seeded" not in names and (not self.producers or "oatest" not in names):
            specs.append(Spec("seeded"))
        if self.patterns and not self.has_library and "oatest" not in names:
            specs.append(Spec("oatest"))
        if self.finite and len(specs) > 1:
            raise SpecError(f"the producer '{self._finite[0]}' must be the only one: leave out all others, and seeds")
        return [self._producer(spec.name, dict(spec.options), str(spec)) for spec in specs]

    def _producer(self, name: str, options: dict[str, str], text: str) -> tuple[str, Any]:
        if PRODUCERS.get(name).needs_seeds and not self.has_seeds:
            raise SpecError(f"the producer '{name}' needs --seed-models, --instances or --corpus")
        return name, self.options_of(name, options, text)

    def remembered(self) -> dict[str, Any]:
        """Return the options that a resumed campaign inherits, as JSON values."""
        return {name: value for name, value in self._as_json().items() if name not in SESSION_ONLY}

    def resumed(self, stored: Mapping[str, Any], given: Collection[str]) -> "Plan":
        """Return this plan with `stored` options in place of those that are not in `given`."""
        names = {field.name for field in fields(self)} - SESSION_ONLY - set(given)
        known = {_RENAMED.get(name, name): value for name, value in stored.items()}
        return replace(self, **{name: _value(name, known[name]) for name in names if name in known})

    def as_json(self) -> str:
        """Print the plan for a lane."""
        return json.dumps(self._as_json())

    def _as_json(self) -> dict[str, Any]:
        """Return every option as a JSON value: specs and paths as texts."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "transforms": [str(one) for one in self.transforms], "out": str(self.out)}


def plan_from(text: str) -> Plan:
    """Read back what `Plan.as_json` printed."""
    data: dict[str, Any] = json.loads(text)
    known = {field.name for field in fields(Plan)}
    values = {name: _value(name, value) for name, value in data.items() if name in known}
    values["out"] = Path(data["out"])
    return Plan(**values)


def _value(name: str, stored: Any) -> Any:  # noqa: ANN401 - JSON values; they have lists where options have tuples
    if name == "transforms":
        return tuple(map(parse_spec, stored))
    return tuple(stored) if isinstance(stored, list) else stored
