"""The standalone script writer: a finding as a Python file that imports numpy, onnx and the compiler only.

The skeleton is the part that all targets share; a target's `ScriptLines` add the compiler's own calls. Their
templates get these variables:

- `title`, `message`, `versions` ({distribution: version}), `kind`, `rule`, `stage`, `options` (of the target spec);
- `proof`: `checker` when onnx's checker refuses the model of an invalid program (`rule` is `invalid` then);
- `model`, `feeds`: statements that define `model` (or the function `program` and its constants), and `feeds`, a
  list of dicts; `onnx`: True when `model` is an ONNX model;
- `changed_model`, `changed_feeds`: the same for the faulty run, where it gets a transformed program;
  empty texts where it does not; `transform`: the specs of the transforms of both runs, as text;
- `types`: {input: element type} of the inputs that numpy has no type for, as an expression (`TensorProto.BFLOAT16`, or
  `"bfloat16"` without ONNX); `exotic`: True when an input or output has no numpy type;
  `packed`: True when one has elements of fewer than 8 bits, which stand in arrays one a byte; `fixed`: True when the
  program declares all sizes of its inputs;
- `faulty`, `reference`: the builds (reference is None when no build works); `culprits`: names of the passes to blame;
- `expected`: a statement that defines `expected`, the right value, when another compiler (`voter`) gave it;
- `sources`: the definitions that the script names of the target's own modules (`ScriptLines.sources`);
- `off`: statement lines that define OFF, the passes that are off in the faulty build;
- `brief`: the script uses the compiler as its users do and switches no pass off, so that it needs no OFF;
- `shows`, `dies`: the words that announce a bug (see `confirm`); `patience`: seconds that a hang is waited for;
- `declared`: Python source of a pair, numpy's name of the type and the sizes (None: not fixed) that the bad output
  must have, or an empty text when its shape is not declared; held against an output where no build works;
- `element`: the flat place of the bad element, for results on special values;
- `feed`, `output`: where the bad output is (indices): the decision is about that one alone, because another output
  may have another sensitivity; `reference_feed`, `faulty_feed`: where that feed stands in the two runs;
- `pattern`, `cost`, `sizes`, `nodes`, `calls`: of a finding of cost, the pattern of its series, its class, the numbers
  of copies, the nodes of one copy, and how one call of a lowered program goes over into the next;
- `test_name`: the end of the name of a test function;
- `again`: True when the faulty run comes to every feed twice, and the later results count;
- `tolerance`: a float literal, `reason`: one line that says why it is sound; `signal`: of a death, else 0.

The filter `literal` writes a string or a sequence of strings as Python source.
"""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template

from miscompile.base.errors import MiscompileError, ModelError, UsageError
from miscompile.base.specs import Spec
from miscompile.codegen.layout import array, assign, call
from miscompile.codegen.literals import array_code, literal, native, quoted
from miscompile.codegen.models import feeds_code, model_code, onnx_name, payload_code
from miscompile.core.case import Case, Port
from miscompile.core.examination import Examination
from miscompile.core.outcome import Crashed, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.small import is_packed
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Violated
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.oracles import memory
from miscompile.oracles.cost import CALLED, FLOATS, nodes_of
from miscompile.targets.about import ScriptLines
from miscompile.targets.derivatives import result_ports, rewritten_by
from miscompile.targets.lowering.program import Lowered, UnloweredError
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.transforms.catalogue import AGAIN, STATIC, is_own, present
from miscompile.triage.bisect import expand
from miscompile.triage.inlining import defined, import_blocks, inlined
from miscompile.triage.signature import symptom_of
from miscompile.triage.skeleton import COST_TEMPLATE, TEMPLATE

SHOWS = "BUG:"
"""A script prints a line that begins with this before it exits with 1."""
DIES = "DIES:"
"""A script prints a line that begins with this before the step that is going to kill it."""

PATIENCE = 30
"""Seconds after which a script takes a step for a hang."""

_COST_SOURCES = (
    "miscompile.base.metering", "miscompile.graph.copies", "miscompile.graph.call_copies",
    "miscompile.oracles.cost_rules",
)  # fmt: skip
"""The modules from which scripts about cost contain functions: series, measurements and decision are the tool's own."""

_MOST_BYTES = 1 << 20
"""Bytes of a program and its inputs above which an unreduced finding gets no script."""

_SPREAD = 10.0
_TEXT_WIDTH = 110
_FEW = 3
_IMPORTS = (
    "import base64, contextlib, resource, signal, sys",
    "import numpy as np",
    "import onnx",
    "import pytest",
    "from onnx import TensorProto, helper, numpy_helper",
)
"""Imports of the skeleton and of the statements for model and feeds."""

_NAMES = (
    *("run", "run_here", "arrays", "seen", "problem", "feeds", "types", "expected", "found", "healed"),
    *("OFF", "CULPRITS", "TOLERANCE", "DECLARED"),
)
"""Names that the skeleton and templates define; a lowered program must not use them."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest difference that is no bug, and the reason why that is sound."""

    value: float
    reason: str


def write_script(
    case: Case,
    evidence: Evidence,
    outcome: Outcome | None = None,
    *,
    culprits: Sequence[str] = (),
    versions: Mapping[str, str] | None = None,
    title: str = "",
    expected: Tensor | None = None,
    template: str = TEMPLATE,
    plain: bool = False,
) -> str:
    """Return the script that shows the violation `evidence` of `case`; `outcome` is that of the faulty run.

    A `plain` script uses the compiler with default options, as its users do; it is empty where the target has no lines
    for such a script of this case.
    With `TEST_TEMPLATE` as the `template`, return a pytest module with one test, which fails while the bug is there.

    `expected` is the right value of the bad output, needed when the reference run was another target's. Exit code 1
    means that the bug shows, 0 that it does not; for deaths the script dies. Raises ModelError when the program is
    no ONNX model or has no lowering, UsageError when the target has no script lines.
    """
    spec = parse_target(evidence.faulty.target)
    if not spec.about.script:
        raise UsageError(f"target {spec.about.name} has no script lines; name them in its about.py")
    lines: ScriptLines = load_attribute(spec.about.script)
    faulty, reference = evidence.faulty, evidence.reference
    values = {
        **_described(evidence, outcome, title or _title(spec.about.title, evidence, culprits), versions),
        **_stated(*_as_seen(case, evidence), lines),
        "options": spec.options,
        "faulty": faulty.build,
        "reference": reference.build if reference and reference.target == faulty.target else None,
        **_guilt(faulty.build, sorted(expand(culprits, spec.about.twins))),
        **_decision(case, evidence, expected),
        "voter": _voter(reference),
        "test_name": test_name(evidence, culprits),
        **_series(case, evidence),
        "levels": lines.plain_levels if plain else lines.levels,
        "versions_shown": lines.versions,
        "brief": plain and not faulty.build.disabled,
        "setup": lines.setup,
    }
    for name, text in (("prelude", lines.prelude), ("run", lines.plain if plain else lines.run)):
        values[name] = _template(text).render(values).strip("\n")
    if not values["run"]:
        return ""
    if evidence.kind == "cost":
        if lines.program and not (lines.calls and values["pattern"] in CALLED):
            return ""  # no function can put copies of such a program into one
        template = COST_TEMPLATE
        lines = replace(lines, sources=(*lines.sources, *_COST_SOURCES))
    skeleton = _template(template)
    return skeleton.render(values, **_contained(lines, skeleton.render(values, **_NOTHING)))


def first_script(
    case: Case,
    evidence: Evidence,
    outcome: Outcome | None,
    culprits: Sequence[str],
    versions: Mapping[str, str],
    expected: Tensor | None = None,
) -> str:
    """Return the script of a finding that nobody has reduced, so that people can run it at once.

    It is empty where none can be written: the program is too large for a text or has no lowering, or the right value
    came from another target and is not at hand. Triage writes the final one.
    """
    reference = evidence.reference
    crossed = reference is not None and reference.target != evidence.faulty.target
    size = len(case.program.payload) + sum(value.array.nbytes for feed in case.feeds for value in feed)
    if size > _MOST_BYTES or (crossed and expected is None):
        return ""
    try:
        return write_script(case, evidence, outcome, culprits=culprits, versions=versions, expected=expected)
    except MiscompileError:
        return ""


def expected_of(seen: Examination) -> Tensor | None:
    """Return the right value of the bad output, where another target's run gave it."""
    if not isinstance(seen.verdict, Violated):
        return None
    evidence, outcome = seen.verdict.evidence, seen.reference
    if evidence.reference is None or evidence.reference.target == evidence.faulty.target:
        return None
    if not isinstance(outcome, Values) or "output" not in evidence.details:
        return None
    return outcome.results[int(evidence.details.get("feed", 0))][int(evidence.details["output"])]


def test_name(evidence: Evidence, culprits: Sequence[str]) -> str:
    """Return the end of the name of a test function: the culprits, or the output, in words."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", "_".join(culprits) or "valid_model")
    return f"{re.sub(r'[^A-Za-z0-9]+', '_', words).strip('_').lower()}_{evidence.kind.replace('-', '_')}"


@cache
def _template(text: str) -> Template:
    """Compile a template once, because that takes longer than all else about a script."""
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["literal"] = lambda value: literal(value if isinstance(value, str) else list(value))
    environment.filters["through"] = _through
    return environment.from_string(text)


def _through(value: object, path: str) -> str:
    """Return the result of the function at the import path `path` on `value`; templates call it for complex texts."""
    return str(load_attribute(path)(value))


def _described(
    evidence: Evidence, outcome: Outcome | None, title: str, versions: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the template variables about the finding."""
    return {
        "title": title,
        "message": "\n".join(textwrap.wrap(one_line(evidence.message), _TEXT_WIDTH)),
        "versions": dict(versions or {}),
        "kind": evidence.kind,
        "rule": evidence.rule,
        "proof": str(evidence.details.get("proof", "")),
        "stage": symptom_of(evidence, outcome).stage,
        "signal": outcome.signal if isinstance(outcome, Crashed) else 0,
        "shows": SHOWS,
        "dies": DIES,
        "patience": PATIENCE,
    }


def _as_seen(case: Case, evidence: Evidence) -> tuple[Case, Case]:
    """Return the cases that the reference build and the faulty build get.

    Where the reference is built anew for every set of sizes, it is the case of the one feed that the decision is about.
    """
    seen = []
    for run in (evidence.reference, evidence.faulty):
        transform = _applied_here(run.build.transform) if run is not None else None
        shares = present(case, transform) if transform and not is_own(transform) and transform != AGAIN else ()
        place = int(evidence.details.get("feed", 0))
        chosen = next((share for share in shares if place in share.feeds), None)
        shown = case if chosen is None else chosen.case
        seen.append(replace(shown, feeds=(case.feeds[place],)) if transform == STATIC else shown)
    return seen[0], seen[1]


def _applied_here(transform: Spec | None) -> Spec | None:
    """Return the transform that changes the program before it is spelled; the adapter's own are in the templates."""
    return rewritten_by(transform) or transform


def _stated(case: Case, changed: Case, lines: ScriptLines) -> dict[str, Any]:
    """Return the statements that define the model and the feeds, and those that redefine them for the faulty run."""
    foreign = [port for port in case.program.inputs if not native(port.dtype)]
    if lines.program:
        types = {port.name: quoted(port.dtype) for port in foreign}
    else:
        types = {port.name: f"TensorProto.{onnx_name(port.dtype)}" for port in foreign}
    ports = (*case.program.inputs, *case.program.outputs)
    exotic, packed = any(not native(port.dtype) for port in ports), any(is_packed(port.dtype) for port in ports)
    sizes = [(None,) if port.shape is None else port.shape for port in case.program.inputs]
    fixed = all(isinstance(size, int) for shape in sizes for size in shape)
    other = "" if changed.program == case.program else _spell_changed(changed, lines)
    feeds = "" if _fed(changed) == _fed(case) else _spell_feeds(changed)
    return {
        "model": _spell_model(case, lines), "onnx": not lines.program, "feeds": _spell_feeds(case), "types": types,
        "exotic": exotic, "packed": packed, "fixed": fixed, "changed_model": other, "changed_feeds": feeds,
    }  # fmt: skip


def _fed(case: Case) -> list[tuple[str, list[int]]]:
    """Return which tensors are fed to which input."""
    columns = zip(*case.feeds, strict=True)
    return [(port.name, list(map(id, values))) for port, values in zip(case.program.inputs, columns, strict=False)]


def _spell_model(case: Case, lines: ScriptLines) -> str:
    model = read(case.program.payload)
    if not lines.program:
        return model_code(model)
    return _spell_program(partial(load_attribute(lines.program), taken={*_NAMES, *defined(lines.sources)}), model)


def _spell_changed(case: Case, lines: ScriptLines) -> str:
    """Return the statements for the program of the faulty run; its bytes, where only its serialisation differs."""
    if not lines.program and emit(read(case.program.payload)) != case.program.payload:
        return payload_code(case.program.payload, "it matters how they are stored")
    return _spell_model(case, lines)


def _spell_feeds(case: Case) -> str:
    names = [port.name for port in case.program.inputs]
    return feeds_code([dict(zip(names, feed, strict=True)) for feed in case.feeds])


def _spell_program(lower: Callable[[Model], Lowered], model: Model) -> str:
    try:
        lowered = lower(model)
    except UnloweredError as error:
        raise ModelError(f"the model has no lowering for its script: {error}") from None
    constants = [
        assign(name, call("tensor", array_code(value), quoted(value.dtype)))
        for name, value in lowered.constants.items()
    ]
    return "\n\n\n".join(part for part in ("\n".join(constants), lowered.source.strip("\n")) if part) + "\n"


def _guilt(faulty: Build, guilty: Sequence[str]) -> dict[str, Any]:
    return {
        "culprits": [name for name in guilty if name not in faulty.disabled],
        "off": _off(sorted(faulty.disabled)),
    }


def _decision(case: Case, evidence: Evidence, expected: Tensor | None) -> dict[str, Any]:
    """Return the template variables about the comparison of outputs."""
    tolerance, output = tolerance_of(evidence), _output(case, evidence)
    runs = (evidence.reference, evidence.faulty)
    return {
        "feed": int(evidence.details.get("feed", 0)),
        "reference_feed": _reference_feed(evidence),
        "faulty_feed": _faulty_feed(case, evidence),
        "again": evidence.faulty.build.transform == AGAIN,
        "transform": " ".join(str(run.build.transform) for run in runs if run and run.build.transform),
        "output": output,
        "declared": _declared(result_ports(case.program, evidence.faulty.build.transform)[output]),
        "expected": "" if expected is None else assign("expected", array_code(_seen(expected))),
        "element": int(evidence.details.get("element", 0)),
        "tolerance": literal(float(f"{tolerance.value:.6g}")),
        "reason": tolerance.reason,
    }


def _series(case: Case, evidence: Evidence) -> dict[str, Any]:
    """Return the template variables about the series of a finding of cost."""
    if evidence.kind != "cost":
        return {}
    details = evidence.details
    sizes = [int(row["copies"]) for row in details["series"]]
    return {
        "pattern": str(details["pattern"]),
        "cost": str(details["cost"]),
        "sizes": sizes,
        "nodes": nodes_of(case.program),
        "calls": _calls(case),
    }


def _calls(case: Case) -> str:
    """Return the last arguments of `repeated_calls` as source: how one call of the program goes over into the next."""
    inputs, free = case.program.inputs, list(enumerate(case.program.outputs))
    wires: list[int | None] = []
    for port in inputs:
        fits = [one for one in free if (one[1].dtype, one[1].shape) == (port.dtype, port.shape)]
        wires.append(fits[0][0] if fits and port.dtype in FLOATS else None)
        if wires[-1] is not None:
            free.remove(fits[0])
    first = next((place for place, port in enumerate(inputs) if port.dtype in FLOATS), 0)
    return f"{wires}, {first}, {[port.dtype in FLOATS for port in case.program.outputs]}"


def _reference_feed(evidence: Evidence) -> int:
    """Return the index of the decisive feed in the reference run, which may have only that feed."""
    static = evidence.reference is not None and evidence.reference.build.transform == STATIC
    return 0 if static else int(evidence.details.get("feed", 0))


def _faulty_feed(case: Case, evidence: Evidence) -> int:
    """Return the index of the decisive feed in the faulty run, which may have only that feed, or each feed twice."""
    feed, transform = int(evidence.details.get("feed", 0)), _applied_here(evidence.faulty.build.transform)
    shares = present(case, transform) if transform and transform != STATIC and not is_own(transform) else ()
    answering = next((share.feeds for share in shares if feed in share.feeds), (*range(feed), feed))
    return len(answering) - 1 - answering[::-1].index(feed)


def _seen(value: Tensor) -> Tensor:
    """Return `value` as scripts see outputs: brain floats are widened, other foreign types are bits."""
    if value.dtype == "bfloat16":
        return Tensor("float32", (value.array.astype(np.uint32) << 16).view(np.float32))
    return value if native(value.dtype) else Tensor("uint8", value.array.view(np.uint8))


def _voter(reference: Run | None) -> str:
    if reference is None:
        return "no compiler"
    return f"{parse_target(reference.target).about.title} (level {reference.build.level})"


def _contained(lines: ScriptLines, script: str) -> dict[str, Any]:
    """Return what a `script` lacks: import lines, by groups, and what it names of the target's own modules."""
    found = inlined(script, lines.sources, (*_IMPORTS, *lines.imports))
    standard, others, own = import_blocks(found.imports)
    return {"standard": standard, "third_party": others, "own": own, "sources": found.text}


_NOTHING: Mapping[str, Any] = {"standard": (), "third_party": (), "own": (), "sources": ""}


def tolerance_of(evidence: Evidence) -> Tolerance:
    """Return the tolerance under which the script decides.

    The Monte-Carlo rule allows each element twice its own sensitivity, which is at least a tenth of the largest
    one in its tensor; so ten times what the worst element is allowed covers every element.
    """
    if evidence.rule == "fixed":
        allowed = float(evidence.details.get("allowed", 1e-3))
        return Tolerance(allowed, "A fixed threshold, by request.")
    if evidence.rule == "library":
        allowed = float(evidence.details.get("allowed", 0.0))
        return Tolerance(
            allowed, "What the type of an element and its sensitivity to the last places of the inputs explain."
        )
    if evidence.rule != "monte-carlo":
        return Tolerance(0.0, "Every correct implementation gives the same bits here, so no difference is allowed.")
    allowed, difference = float(evidence.details["allowed"]), float(evidence.details["difference"])
    if difference > _SPREAD * allowed:
        reason = "Rounding every float operation differently moves no element of this graph by half as much."
        return Tolerance(_SPREAD * allowed, reason)
    return Tolerance(allowed, "Rounding every float operation differently moves the worst element by half as much.")


def _output(case: Case, evidence: Evidence) -> int:
    """Index of the bad output: as the oracle says, else by its name, else the first."""
    names = [port.name for port in case.program.outputs]
    by_name = names.index(evidence.output) if evidence.output in names else 0
    return int(evidence.details.get("output", by_name))


def _declared(port: Port) -> str:
    """Type and sizes as the script sees them: brain floats are widened, strings are objects, the rest are bits."""
    if port.shape is None:
        return ""
    name = {"bfloat16": "float32", "string": "object"}.get(port.dtype, port.dtype if native(port.dtype) else "uint8")
    return f'("{name}", {tuple(size if isinstance(size, int) else None for size in port.shape)})'


def _title(target: str, evidence: Evidence, culprits: Sequence[str]) -> str:
    what = {
        "wrong": "wrong values",
        "special": "wrong values on special operands",
        "missing": "an output is missing",
        "shape": "an output has the wrong shape",
        "dtype": "an output has the wrong type",
        "exception": "a valid model raises an error",
        "death": "the process dies",
        "hang": "no end",
        "memory": "memory without bound",
        "accepted": "an invalid model is accepted and run",
        "cost": f"{evidence.details.get('cost', 'cost')} out of proportion",
        "refused-form": "a form of an operator is refused that others are not",
    }[evidence.kind]
    if evidence.rule == memory.RULE:
        what = f"{what} ({evidence.details['memory']})"
    return f"{target}: {what}" + (f" with {' and '.join(culprits)}" if culprits else "")


def one_line(message: str, most: int = 400) -> str:
    """Return a message as one printable line of at most `most` letters that can stand in a docstring."""
    line = " ".join(message.split()).replace("\\", "/").replace('"""', "'''")
    return "".join(letter if letter.isprintable() else "?" for letter in line)[:most].rstrip('"')


def _off(names: Sequence[str]) -> str:
    if not names:
        return "OFF = []"
    if len(names) <= _FEW:
        return assign("OFF", array([quoted(name) for name in names]))
    # Names of passes may contain hyphens, and must not be broken there.
    wrapped = textwrap.wrap(" ".join(names), _TEXT_WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    lines = textwrap.indent("\n".join(wrapped), "    ")
    return f'OFF = """\n{lines}\n""".split()'
