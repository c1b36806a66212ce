"""Constraints on parameters extracted from documentation: kinds, lists of values, ranks and bounds.

The texts are docstrings in the styles of PyTorch and Keras (`name (type, optional): what it is`, under `Args:`), and
descriptions in the schemas of ONNX. A few fixed phrases are recognised, and other text is ignored.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from miscompile.harvest.constraints.generate import Constraint, ParameterKind, ParameterPlace
from miscompile.instances.values import Value


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IGNORED = _words(
    "out layout device requires_grad generator pin_memory memory_format name size_average reduce self cls args kwargs "
    "seed noise_shape autocast lora_rank lora_alpha quantization_config seed_generator _stacklevel _freeze"
)
"""Parameters that do not affect the results, or that only accept objects of the library."""

_IGNORED_ENDS = ("_initializer", "_regularizer", "_constraint", "_weights", "_weight")
_TENSORS = _words(
    "input inputs other tensor x y x1 x2 x3 a b A B weight bias target mat1 mat2 mat vec vec1 vec2 batch1 batch2 end "
    "query key value value mask condition indices index src source values running_mean running_var tensor1 tensor2 "
    "input1 input2 anchor positive negative true_fn images sequence sequences labels logits theta grid boxes"
)
_AXES = _words("dim axis dims axes dim0 dim1 axis1 axis2 source destination axis0 batch_dims")

_ENTRY = re.compile(r"^(\s+)\*{0,2}(\w+)(?:\s+\(((?:[^()]|\([^()]*\))*)\))?\s*:\s*(.*)$")
_HEAD = re.compile(r"^\s*(?:\w+\.)*\w+\(((?:[^()]|\([^()]*\))*)\)", re.M)
_QUOTED = re.compile(r"""(?<![\w])['"]([A-Za-z][\w\-]*)['"]""")
_TICKED = re.compile(r"(?:one of|either|must be|modes?|values are|options)[^.]*", re.I)
_BACKTICKED = re.compile(r"`([a-z]\w*)`")
_NAMED = re.compile(r"\b[A-Z][A-Z_]{2,}\b")


@dataclass(frozen=True, slots=True)
class DocumentedParameter:
    """The documentation of one parameter."""

    kind: str
    text: str


def documented_parameters(doc: str) -> dict[str, DocumentedParameter]:
    """Return the documentation of each parameter in a docstring, by name; the first mention counts."""
    found: dict[str, DocumentedParameter] = {}
    name, kind, lines, depth = "", "", [""], 0
    for line in [*doc.splitlines(), " end: "]:
        entry = _ENTRY.match(line)
        if entry and (not name or len(entry[1]) <= depth):
            if name:
                found.setdefault(name, DocumentedParameter(kind, " ".join(lines)))
            depth, name, kind, lines = len(entry[1]), entry[2], entry[3] or "", [entry[4]]
        else:
            lines.append(line.strip())
    return found


def head_of(doc: str) -> list[tuple[str, str | None, bool]]:
    """Return the parameters in the signature at the head of a docstring: name, default as text, keyword only or not."""
    match = _HEAD.match(doc.lstrip("\n"))
    if match is None:
        return []
    found: list[tuple[str, str | None, bool]] = []
    keyword = False
    for part in re.split(r",(?![^(\[]*[)\]])", match[1]):
        text = part.strip()
        if text == "*":
            keyword = True
        elif re.fullmatch(r"\w+(\s*:[^=]+)?(\s*=.*)?", text):
            name, _, default = text.partition("=")
            found.append((name.partition(":")[0].strip(), default.strip() or None, keyword))
    return found


def literal(text: str | None) -> Value:
    """Return the plain value of a default's text, None for anything else."""
    try:
        value = ast.literal_eval(text or "None")
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, bool | int | float | str | tuple) else None


def listed_in(text: str) -> tuple[Value, ...]:
    """Return the texts that a description puts in quotation marks, or names after `one of` and the like."""
    quoted = list(dict.fromkeys(_QUOTED.findall(text)))
    named = _TICKED.search(text)
    if len(quoted) < 2 and named:
        ticked = list(dict.fromkeys(_BACKTICKED.findall(named[0])))
        quoted = list(dict.fromkeys(_NAMED.findall(named[0].replace("`", " ")))) or quoted
        quoted = ticked if len(ticked) > max(len(quoted), 1) else quoted
    return tuple(quoted)


def bounds_in(text: str) -> tuple[float | None, float | None]:
    """Return the least and the largest number that a description allows, None where it has no bound."""
    number = r"(-?\d+(?:\.\d+)?)"
    between = re.search(
        rf"(?:between|range|\bin|interval)\s*(?:is|of)?\s*[\[(`]*\s*{number}\s*(?:,|and|to)\s*{number}\s*[\])]?", text
    )
    if between:
        return float(between[1]), float(between[2])
    if re.search(r"\bprobabilit", text, re.I):
        return 0.0, 1.0
    if re.search(r"\b(non-?negative|>= ?0)\b", text, re.I):
        return 0.0, None
    if re.search(r"\b(positive|> ?0|at least 1)\b", text, re.I):
        return 1.0, None
    return None, None


def ranks_in(text: str) -> tuple[int, ...]:
    """Return the ranks in a description of a tensor."""
    ranks = {int(rank) for rank in re.findall(r"\b([0-6])-?\s?[dD]\b", text)}
    for shape in re.findall(r"(?:shape|tensor of shape|size)[^(]{0,20}\(([^()]*)\)", text):
        if "*" not in shape and "..." not in shape:
            ranks.add(len([part for part in shape.split(",") if part.strip()]))
    return tuple(sorted(rank for rank in ranks if rank <= 6))


def kinds_in(text: str) -> tuple[ParameterKind, ...]:
    """Return the kinds named in the text of a type: an annotation, or the text in brackets after a name."""
    plain = text.replace("torch.", "").replace("typing.", "")
    rules: tuple[tuple[ParameterKind, str], ...] = (
        (
            "tensors",
            r"(sequence|list|tuple|iterable)s?\b[^,]{0,12}\btensors?|List\[Tensor|Tuple\[Tensor|Sequence\[Tensor",
        ),
        ("tensor", r"(?<!\[)\bTensor(Like)?\b|\btensor\b|\bLongTensor\b"),
        ("ints", r"(tuple|list|sequence)s?\b.{0,6}\bint|BroadcastingList|\bSize\b|_size"),
        ("floats", r"(tuple|list|sequence)s?\b.{0,6}\bfloat"),
        ("int", r"(?<![\[\w])\bints?\b|\binteger\b|_size_\d_t|Integer"),
        ("float", r"(?<![\[\w])\bfloat\b|\bNumber\b|\bScalar\b"),
        ("bool", r"\bbool(ean)?\b|\bBoolean\b"),
        ("text", r"\bstr(ing)?\b|\bString\b"),
        ("dtype", r"\bdtype\b"),
    )
    found = [kind for kind, rule in rules if re.search(rule, plain, re.I if kind != "tensor" else 0)]
    if "tensors" in found and "tensor" in found and not re.search(r"Tensor or|Tensor \||Union\[Tensor", plain):
        found.remove("tensor")
    return tuple(found)


def constraint(
    name: str,
    default: str | None,
    annotation: str,
    documented: Mapping[str, DocumentedParameter],
    place: ParameterPlace = "given",
) -> Constraint | None:
    """Return the constraint on a parameter from its name, default, annotation and documentation.

    None for an ignored parameter, or when its kind is unknown.
    """
    if name in IGNORED or name.endswith(_IGNORED_ENDS) or name.startswith("_"):
        return None
    entry = documented.get(name, DocumentedParameter("", ""))
    value = literal(default)
    kinds = kinds_in(entry.kind) or kinds_in(annotation) or kinds_in(entry.text[:60]) or _kinds_of(name, value)
    if name in _TENSORS and default is None and not set(kinds) & {"tensor", "tensors"}:
        kinds = ("tensor",)
    if not kinds:
        return None
    low, high = bounds_in(entry.text)
    values = listed_in(entry.text) if "text" in kinds else ()
    if isinstance(value, str) and values and value not in values:
        values = (value, *values)
    return Constraint(
        name,
        kinds,
        default is None,
        value,
        values=values,
        dtypes=_dtypes(kinds, entry.text),
        ranks=ranks_in(entry.text) if "tensor" in kinds else (),
        low=low,
        high=high,
        lengths=(),
        axis=name in _AXES,
        place=place,
    )


def _kinds_of(name: str, value: Value) -> tuple[ParameterKind, ...]:
    match value:
        case bool():
            return ("bool",)
        case int():
            return ("int",)
        case float():
            return ("float",)
        case str():
            return ("text",)
        case tuple():
            return ("ints",)
    if name in _AXES:
        return ("int",)
    return ("dtype",) if name == "dtype" else ("tensor",) if name in _TENSORS else ()


def _dtypes(kinds: tuple[ParameterKind, ...], text: str) -> tuple[str, ...]:
    if "tensor" not in kinds:
        return ()
    if re.search(r"LongTensor|\bindices\b|\bclass (index|indices)\b|\binteger tensor\b|int64", text):
        return ("int64", "int32")
    if re.search(r"\b(bool(ean)? (tensor|mask)|BoolTensor)\b", text, re.I):
        return ("bool",)
    return ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int8", "uint8", "bool", "complex64")
