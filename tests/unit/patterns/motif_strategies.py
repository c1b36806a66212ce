"""Random motifs for laws: whatever the language can hold, sense or nonsense."""

import math

from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES, FLOATS, PLAIN
from miscompile.patterns.language import (
    Argument,
    Elements,
    Full,
    Ints,
    Motif,
    MotifCall,
    MotifValue,
    Number,
    Numbers,
    Ref,
    Statement,
    Weight,
    Word,
)

names = st.sampled_from(["x", "y", "N", "M", "Add", "v_1", "_a", "B2", "long_name", "infinite"])
sizes = st.tuples() | st.lists(st.integers(0, 9) | names, max_size=3).map(tuple)
floats = st.floats(allow_nan=False) | st.just(math.nan)
numbers = st.integers(-(2**63), 2**64) | floats
words = st.text(max_size=6).map(Word) | st.sampled_from(["#", "a'b\"c", "\\", "\n", "\udc80", "N"]).map(Word)
dtypes = st.none() | st.sampled_from(PLAIN)
within = st.none() | st.tuples(st.floats(-5, 0) | st.integers(-5, 0), st.floats(0, 5) | st.just(math.inf))


@st.composite
def elements(draw: st.DrawFn) -> Elements:
    values = tuple(draw(st.lists(numbers | names, max_size=4)))
    shapes = st.sampled_from(
        [(len(values),), (1, len(values)), (len(values), 1, 1), *([()] if len(values) == 1 else [])]
    )
    return Elements(values, draw(st.none() | shapes), draw(dtypes))


@st.composite
def values(draw: st.DrawFn) -> MotifValue:
    shape = draw(st.none() | sizes)
    leading = True if shape is None else draw(st.booleans())
    return MotifValue(draw(names), shape, leading, draw(dtypes), draw(within))


settings = st.one_of(
    numbers, names, words, elements(), st.lists(st.integers() | names, max_size=4).map(tuple),
    st.lists(floats, min_size=1, max_size=4).map(tuple), st.lists(words, min_size=1, max_size=4).map(tuple),
)  # fmt: skip


literals = st.one_of(
    st.none(), numbers.map(Number), st.builds(Full, numbers, sizes), st.builds(Ints, sizes),
    (st.integers() | names).map(lambda size: Ints((size,), scalar=True)),
)  # fmt: skip
attributes = st.dictionaries(names, settings, max_size=3)


@st.composite
def calls(draw: st.DrawFn, bound: list[str]) -> MotifCall:
    chosen = draw(attributes)
    if draw(st.booleans()):
        chosen["to"] = draw(st.sampled_from(["T", *DTYPES]) | st.integers(1, 20))
    arguments: list[Argument] = draw(st.lists(literals, max_size=4))
    for place in range(len(arguments)):
        if len(bound) > 0 and draw(st.booleans()):
            arguments[place] = Ref(draw(st.sampled_from(bound)))
    results = draw(st.lists(names | st.just("_"), min_size=1, max_size=3))
    return MotifCall(tuple(results), draw(names), tuple(arguments), tuple(chosen.items()))


constants = st.builds(Weight, names, sizes, within, dtypes) | st.builds(Numbers, names, elements())


@st.composite
def motifs(draw: st.DrawFn) -> Motif:
    bound: list[str] = []
    statements: list[Statement] = []
    for _ in range(draw(st.integers(0, 5))):
        statement = draw(draw(st.sampled_from([values(), constants, calls(bound)])))
        statements.append(statement)
        made = statement.names if isinstance(statement, MotifCall) else (statement.name,)
        bound += [name for name in made if name != "_"]
    name = draw(st.sampled_from(["m", "a-b_c", "1", "noop"]))
    chosen = draw(st.just(FLOATS) | st.lists(st.sampled_from(list(DTYPES)), min_size=1, max_size=3).map(tuple))
    return Motif(name, draw(st.booleans()), chosen, tuple(statements))
