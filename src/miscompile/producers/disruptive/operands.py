"""Constraint violations in operands: unsupported dtype, mismatched dtypes or shapes, wrong rank, wrong elements,
elements for which the operator is undefined.

The first three are those of HIRFUZZ (section 3.1.5). A violation changes a draft of a valid call in one place; a proof
decides whether the result is invalid.
"""

import random
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np

from miscompile.base.dtypes import DTYPES, PLAIN, is_integer
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Array
from miscompile.graph.model import TensorType
from miscompile.ops.registry import schema
from miscompile.ops.spec import Shape
from miscompile.producers.disruptive.draft import DraftOperand, InvalidDraft
from miscompile.producers.disruptive.proof import Page

FOREIGN = (*PLAIN, "string", "complex64")
"""Dtypes to choose from for an operand whose operator does not support them."""

INDICES = frozenset({"indices", "I", "sequence_lens", "axes", "axis", "position_ids", "batch_indices"})
"""Formal operands whose elements are positions, lengths or axes, and must be in range."""

MEANINGFUL = frozenset({"Clip"})
"""Operators whose samplers leave out integers that the page gives a meaning: a least value above the largest one."""

_NAMES = {"tensor(float)": "float32", "tensor(double)": "float64"}
_FAR = (-1, -2, 0, 1, 2, 3, 5, 100, -100, 2**31 - 1, -(2**31))


class Formal(NamedTuple):
    """A formal operand of an operator's schema; equal type variables stand for equal types."""

    name: str
    variable: str
    dtypes: frozenset[str]


class Broken(NamedTuple):
    """A changed draft; `detail` describes the violation, `key` identifies it for the coverage.

    `place` names the part of the call that was changed, so that a reduction can describe and repair it: `operand 0`,
    `operand 0,2` (several in the same way), `attribute axis`, `result 0`, `operands` or `results` (their number), and
    `call` for anything else.

    `page` selects the rules of the operator's page that may prove it invalid. Rules on ranges of elements may do so for
    indices only, because for other operands they also demand conditions that merely make results unique or exact.
    """

    draft: InvalidDraft
    detail: str
    key: str
    page: Page = "none"
    place: str = "call"


def formals(draft: InvalidDraft) -> list[Formal]:
    """Return the formal operands, one for each operand given. Raises RejectedDraft when there is no schema."""
    known = schema(draft.op, draft.opset, draft.domain)
    if known is None or not known.inputs:
        give_up("no formal operands")
    found = []
    for place in range(len(draft.parts)):
        formal = known.inputs[min(place, len(known.inputs) - 1)]
        repeated = place >= len(known.inputs) - 1 and not formal.is_homogeneous
        variable = f"{formal.type_str}#{place}" if repeated else formal.type_str
        found.append(Formal(formal.name, variable, frozenset(map(_dtype_of, formal.types))))
    return found


def break_dtype(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Give an operand, mostly with all of the same type variable, a dtype that the operator does not support."""
    known = formals(draft)
    place, part = _any_part(rng, draft)
    formal = known[place]
    dtype = rng.choice([name for name in FOREIGN if name not in formal.dtypes] or _nothing())
    alike = [n for n, other in enumerate(known) if other.variable == formal.variable and rng.random() < 0.8]
    places = {place, *alike}
    parts = tuple(
        old.cast(dtype) if old is not None and number in places else old for number, old in enumerate(draft.parts)
    )
    outputs = draft.outputs if len(places) == 1 < len(known) else _retyped(draft, formal.variable, dtype)
    detail = f"operand {formal.name} has type {dtype} instead of {part.dtype}, which {draft.op} does not take"
    label = f"operand {','.join(map(str, sorted(places)))}"
    changed = replace(draft, parts=parts, outputs=outputs)
    return Broken(changed, detail, f"{formal.name}:{dtype}:{len(places)}", place=label)


def break_mixed(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Give one of several operands of one type variable another dtype that the operator supports."""
    known = formals(draft)
    variables = [formal.variable for formal, part in zip(known, draft.parts, strict=True) if part is not None]
    places = [
        place
        for place, (formal, part) in enumerate(zip(known, draft.parts, strict=True))
        if part is not None and variables.count(formal.variable) > 1
    ]
    place = rng.choice(places or _nothing())
    part = _given(draft, place)
    dtype = rng.choice([name for name in PLAIN if name in known[place].dtypes and name != part.dtype] or _nothing())
    detail = f"operand {known[place].name} has type {dtype}, others that must have the same type have {part.dtype}"
    key = f"{place}:{part.dtype}/{dtype}"
    return Broken(_put(draft, place, part.cast(dtype)), detail, key, place=f"operand {place}")


def break_shape(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Change a size of an operand, or exchange two, so that the shapes of the operands no longer match."""
    place, part = _any_part(rng, draft)
    shape = part.shape
    if not shape:
        give_up("a scalar has no sizes")
    axis = int(rng.random() * len(shape))
    old = shape[axis]
    new = rng.choice([old + 1, max(0, old - 1), 0, 1, 2, 3, 2 * old, rng.choice(shape)])
    if new == old:
        give_up("the same size")
    changed = (*shape[:axis], new, *shape[axis + 1 :])
    relation = f"{_size_class(old)}>{_size_class(new)}{'+' if new > old else '-'}"
    return _reshaped(draft, place, changed, f"{place}:{axis - len(shape)}:{relation}")


def break_rank(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Give an operand more or fewer dimensions than the operator takes."""
    place, part = _any_part(rng, draft)
    shape = part.shape
    choices: list[Shape] = [(), (1, *shape), (*shape, 1), (2, *shape), (*shape, 2), (*shape, 1, 1, 1)]
    choices += [shape[1:], shape[:-1], (*shape[:1], 2, *shape[1:])] if shape else [(0,)]
    changed = rng.choice([other for other in choices if len(other) != len(shape)])
    return _reshaped(draft, place, changed, f"{place}:{len(shape)}>{len(changed)}:{changed[:1] == shape[:1]}")


def break_contents(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Put wrong elements into a structural operand: sizes, axes, counts, indices. Sometimes it becomes an input."""
    known = formals(draft)
    places = [
        place
        for place, part in enumerate(draft.parts)
        if part is not None and is_integer(part.dtype) and (part.known or known[place].name in INDICES)
    ]
    place = rng.choice(places or _nothing())
    part = _given(draft, place)
    label, elements = _corrupted(rng, part)
    changed = DraftOperand(part.holding(elements).value, part.role, known=part.known or part.value.array.size <= 64)
    if changed.role == "constant" and rng.random() < 0.3:
        changed = changed._replace(role="structural")
    shown = elements.ravel()[:8].tolist()
    detail = f"operand {known[place].name} holds {shown} where a valid call has {part.value.array.ravel()[:8].tolist()}"
    page: Page = "elements" if known[place].name in INDICES else "form"
    return Broken(
        _put(draft, place, changed), detail, f"{known[place].name}:{label}:{changed.role}", page, f"operand {place}"
    )


def break_domain(rng: random.Random, draft: InvalidDraft) -> Broken:
    """Put integers into operands for which the operator is undefined: a divisor of zero, a shift by the whole width.

    Several operands may change at once, because the quotient of the lowest integer needs a divisor of -1 as well.
    """
    if draft.op in MEANINGFUL:
        give_up("the operator's page gives these elements a meaning")
    known = formals(draft)
    places = [
        place
        for place, part in enumerate(draft.parts)
        if part is not None
        and part.value.array.size
        and is_integer(part.dtype)
        and not (part.known or known[place].name in INDICES)
    ]
    chosen = [place for place in places if rng.random() < 0.6] or [rng.choice(places or _nothing())]
    changed, said, keys = draft, [], []
    for place in chosen:
        part = _given(draft, place)
        number, elements = _at_the_edge(rng, part)
        changed = _put(changed, place, part.holding(elements))
        said.append(f"operand {known[place].name} holds {elements.ravel()[:8].tolist()}")
        keys.append(f"{known[place].name}:{number}:{part.role}")
    where = ",".join(map(str, chosen))
    return Broken(changed, " and ".join(said), "+".join(keys), "domain", f"operand {where}")


def _at_the_edge(rng: random.Random, part: DraftOperand) -> tuple[int, Array]:
    """Return an integer at an edge of the domain of some operator, and the elements of an operand with it in one or all
    places."""
    info, width = np.iinfo(part.value.array.dtype), DTYPES[part.dtype].bits
    edges = (0, 0, -1, 1, int(DTYPES[part.dtype].low), int(DTYPES[part.dtype].high), width, width - 1, 2 * width)
    number = rng.choice([edge for edge in edges if info.min <= edge <= info.max])
    new = part.value.array.copy()
    if rng.random() < 0.5:
        new.flat[:] = number
    else:
        new.flat[int(rng.random() * new.size)] = number
    return number, new


def _corrupted(rng: random.Random, part: DraftOperand) -> tuple[str, Array]:
    """Return other elements for a structural operand, and a label for them."""
    old = part.value.array
    info = np.iinfo(old.dtype)
    fitting = [number for number in _FAR if info.min <= number <= info.max]
    how = rng.choice(("element", "element", "element", "all", "longer", "shorter", "copies"))
    if how == "longer" and old.ndim == 1:
        return how, np.append(old, np.asarray(rng.choice(fitting), old.dtype))
    if how == "shorter" and old.ndim == 1 and old.size:
        return how, old[:-1]
    if old.size == 0:
        give_up("no elements")
    new = old.copy()
    if how == "copies" and old.size > 1:
        new.flat[1:] = old.flat[0]
        return how, new
    number = rng.choice(fitting)
    if how == "all":
        new.flat[:] = number
    else:
        new.flat[int(rng.random() * new.size)] = number
    return f"{how}={number}", new


def _reshaped(draft: InvalidDraft, place: int, shape: Shape, key: str) -> Broken:
    part = _given(draft, place)
    if int(np.prod(shape, dtype=np.int64)) > 4096:
        give_up("too large")
    name = formals(draft)[place].name
    detail = f"operand {name} has shape {list(shape)} where a valid call has {list(part.shape)}"
    return Broken(_put(draft, place, part.sized(shape)), detail, key, "form", f"operand {place}")


def _size_class(size: int) -> str:
    return str(size) if size < 2 else "n"


def _any_part(rng: random.Random, draft: InvalidDraft) -> tuple[int, DraftOperand]:
    places = [place for place, part in enumerate(draft.parts) if part is not None]
    place = rng.choice(places or _nothing())
    return place, _given(draft, place)


def _given(draft: InvalidDraft, place: int) -> DraftOperand:
    part = draft.parts[place]
    assert part is not None, f"operand {place} is absent"
    return part


def _put(draft: InvalidDraft, place: int, part: DraftOperand) -> InvalidDraft:
    return replace(draft, parts=(*draft.parts[:place], part, *draft.parts[place + 1 :]))


def _retyped(draft: InvalidDraft, variable: str, dtype: str) -> tuple[TensorType, ...]:
    """Declare the outputs that share a type variable with the operands of the new dtype."""
    known = schema(draft.op, draft.opset, draft.domain)
    assert known is not None
    return tuple(
        TensorType(dtype, kind.shape)
        if known.outputs[min(place, len(known.outputs) - 1)].type_str == variable
        else kind
        for place, kind in enumerate(draft.outputs)
    )


def _dtype_of(name: str) -> str:
    return _NAMES.get(name, name.removeprefix("tensor(").removesuffix(")"))


def _nothing() -> NoReturn:
    give_up("nothing to break")


def give_up(why: str) -> NoReturn:
    """Raise RejectedDraft: this kind of violation does not apply to the draft."""
    raise RejectedDraft(why)
