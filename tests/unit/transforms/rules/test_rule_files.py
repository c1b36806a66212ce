"""Rule files and their expression language: what they may say, and what is refused with a message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miscompile.base.errors import SpecError
from miscompile.base.rng import stream
from miscompile.transforms.rules.draws import DRAWS, drawing
from miscompile.transforms.rules.expressions import expression, inverse, put, swap, take, unsqueezed, without
from miscompile.transforms.rules.kinds import TermType
from miscompile.transforms.rules.library import library
from miscompile.transforms.rules.parse import parse_rules
from miscompile.transforms.rules.rule import Apply, Rule, Variable, parts, variables
from miscompile.transforms.rules.side import Side

FULL = {
    "name": '"a-rule"', "group": '"g"', "left": '"Add(x, y)"', "right": '"Add(y, x)"', "exactness": '"bits"',
    "dtypes": '"number"', "source": '"s"',
}  # fmt: skip


def entry(**changes: str | None) -> str:
    lines = {**FULL, **changes}
    return "[[rule]]\n" + "\n".join(f"{key} = {value}" for key, value in lines.items() if value is not None)


def one(**changes: str | None) -> Rule:
    return parse_rules(entry(**changes), "t.toml")[0]


def test_an_entry_becomes_a_rule() -> None:
    rule = one(
        left='"Concat(x, y, axis=a)"',
        right='"Transpose(Concat(Transpose(x, perm=p), Transpose(y, perm=p), axis=inverse(p)[a]), perm=q)"',
        draw='{ p = "permutation(x.rank)" }',
        let='{ q = "inverse(p)" }',
        where='"x.rank > 1"',
        dtypes='["signed", "float32"]',
    )
    assert isinstance(rule.left, Apply)
    assert (rule.left.op, rule.left.parameters[0].variable) == ("Concat", "a")
    assert variables(rule.left) == ("x", "y")
    assert rule.kind == "structural"
    assert rule.dtypes == {"int8", "int16", "int32", "int64", "float32"}
    environment = {"x": TermType("float32", (2, 3)), "y": TermType("float32", (4, 3)), "a": 0}
    assert rule.admits(environment)
    assert not rule.admits({**environment, "y": TermType("uint8", (4, 3))})
    assert not rule.admits({**environment, "x": TermType("float32", (2,))})
    assert rule.extend(environment, stream(0, "x")) == {**environment, "p": (1, 0), "q": (1, 0)}


def test_each_and_both_multiply_entries() -> None:
    rules = parse_rules(entry(name='"OP-x"', each='["Add", "Mul"]', left='"OP(x, y)"', both="true"), "t.toml")
    assert [rule.name for rule in rules] == ["Add-x", "Add-x-back", "Mul-x", "Mul-x-back"]
    assert rules[1].left == rules[0].right
    outputs = parse_rules(
        entry(name='"out-OP"', each='["0", "1"]', left='"Split(x, axis=a, sizes=s)[OP]"', right='"x"'), "t.toml"
    )
    assert [rule.left.output for rule in outputs if isinstance(rule.left, Apply)] == [0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": None}, "lacks source"),
        ({"colour": '"red"'}, "has colour"),
        ({"exactness": '"nearly"'}, "'nearly' is none of bits, zero, rounding"),
        ({"kind": '"odd"'}, "'odd' is none of arithmetic, structural"),
        ({"dtypes": '"floaty"'}, "'floaty' is no element type"),
        ({"dtypes": '{ z = "float" }'}, "dtypes names z"),
        ({"left": '"Addd(x, y)"'}, "no operator Addd"),
        ({"left": '"Add(x)"'}, "Add has 2 operands, not 1"),
        ({"left": '"Add(x, "'}, "is no pattern; it ends too early"),
        ({"left": '"Add(x, 1)"'}, r"is no pattern; see '1\)'"),
        ({"left": '"Transpose(x)"'}, r"Transpose needs \(perm\)"),
        ({"left": '"Transpose(x, axes=p)"'}, r"Transpose needs \(perm\)"),
        ({"left": '"x"'}, "has to be structural"),
        ({"right": '"Add(y, z)"'}, "z stands on the right side only"),
        ({"right": '"Transpose(x, perm=q)"'}, "nothing binds q"),
        ({"left": '"Transpose(x, perm=inverse(q))"', "right": '"x"'}, "nothing binds q"),
        ({"where": '"rank(x) > 1"'}, "calls something that is not part"),
        ({"where": '"x.dtype.upper()"'}, "calls something that is not part"),
        ({"where": '"len > 1"'}, "len is a function"),
        ({"where": '"x.rank >"'}, "is no expression"),
        ({"where": "\"__import__('os')\""}, "calls something that is not part"),
        ({"where": '"(lambda: 1)()"'}, "not part of the language"),
        ({"where": "\"f'{x}'\""}, "not part of the language"),
        ({"where": '"[y := 1]"'}, "not part of the language"),
        ({"where": '"x.__class__"'}, "there is no .__class__"),
        ({"draw": '{ p = "shuffle(x.rank)" }'}, "draws nothing"),
        ({"draw": '{ p = "x.rank" }'}, "draws nothing"),
        ({"let": '{ q = "p" }'}, "nothing binds p"),
        ({"draw": '{ p = "axis(x.rank)" }', "both": "true"}, "cannot go both ways"),
        ({"left": '"Transpose(x, perm=x)"', "right": '"x"'}, "two things at once"),
        ({"left": '"Add(len, y)"', "right": '"y"'}, "two things at once"),
    ],
)
def test_malformed_entries_are_refused(changes: dict[str, str | None], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        one(**changes)


def test_files_hold_rules_alone_and_each_name_once() -> None:
    with pytest.raises(SpecError, match="two rules called a-rule"):
        parse_rules(entry() + "\n" + entry(), "t.toml")
    with pytest.raises(SpecError, match="nothing else"):
        parse_rules("x = 1", "t.toml")
    with pytest.raises(SpecError, match=r"t\.toml"):
        parse_rules("[[rule", "t.toml")
    assert parse_rules("", "t.toml") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x.rank + x.size", 8),
        ("x.shape[-1] == 3 and x.dtype == 'float32'", True),
        ("tuple([n * 2 for n in x.shape if n > 2])", (6,)),
        ("broadcast(x.shape, (1, 1, 1))", (1, 2, 3)),
        ("(0,) * x.rank", (0, 0)),
        ("(*x.shape[:1], 7)", (2, 7)),
        ("max([k for k in range(4) if k != a])", 2),
        ("1 / a if a else 0", 1 / 3),
        ("holds('int8', 'float16') and not holds('int16', 'float16')", True),
        ("holds('uint8', 'int16') and not holds('uint8', 'int8') and not holds('int8', 'uint64')", True),
        ("holds('bool', 'int8') and holds('float16', 'float32') and not holds('float16', 'bfloat16')", True),
        ("kind(x.dtype) == 'float' and width('int16') == 16 and digits('float32') == 24", True),
        ("single(a) and not single((a,))", True),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert expression(text).value({"x": TermType("float32", (2, 3)), "a": 3}) == expected


def test_unbound_variables_raise() -> None:
    with pytest.raises(KeyError):
        expression("a + 1").value({})


permutations = st.integers(0, 6).flatmap(lambda count: st.permutations(range(count))).map(tuple)


@given(permutations)
def test_inverse_undoes_a_permutation(perm: tuple[int, ...]) -> None:
    assert take(perm, inverse(perm)) == tuple(range(len(perm)))
    assert take(inverse(perm), perm) == tuple(range(len(perm)))


def test_small_functions_on_shapes() -> None:
    assert swap(3, 0, 2) == (2, 1, 0)
    assert put((1, 2, 3), 1, 9) == (1, 9, 3)
    assert without((1, 2, 3), 0, 2) == (2,)
    assert unsqueezed((2, 3), (0, 3)) == (1, 2, 3, 1)


@given(st.integers(0, 10**6), st.integers(0, 6))
def test_draws_give_what_they_say(seed: int, count: int) -> None:
    rng = stream(seed, "draws")
    perm = DRAWS["permutation"](rng, count)
    assert perm is None if count < 2 else sorted(perm) == list(range(count)) and perm != tuple(range(count))
    cut = DRAWS["cut"](rng, count)
    assert cut is None if count < 2 else sum(cut) == count and min(cut) > 0
    axis = DRAWS["axis"](rng, count)
    assert axis is None if not count else 0 <= axis < count
    subset = DRAWS["subset"](rng, range(count))
    assert subset is None if not count else set(subset) <= set(range(count)) and sorted(set(subset)) == list(subset)
    pads = DRAWS["pads"](rng, count, 2)
    assert pads is None if not count else len(pads) == 2 * count and any(pads) and 0 <= min(pads) <= max(pads) <= 2
    shape = DRAWS["factorisation"](rng, count * 6)
    size = 1
    for factor in shape or ():
        size *= factor
    assert shape is None if not count else size == count * 6
    factors = DRAWS["factors"](rng, count)
    assert factors is None if count < 4 or count == 5 else factors[0] * factors[1] == count


def test_a_draw_is_a_call_with_expressions() -> None:
    draw = drawing("s", "cut(x.shape[a])", "here")
    found = draw.value({"x": TermType("float32", (2, 5)), "a": 1}, stream(0, "x"))
    assert sum(found) == 5
    assert draw.value({"x": TermType("float32", (1,)), "a": 0}, stream(0, "x")) is None


def test_parts_come_before_their_arguments() -> None:
    rule = one(left='"Add(Neg(x), y)"', right='"Sub(y, x)"')
    names = [part.name if isinstance(part, Variable) else part.op for part in parts(rule.left)]
    assert names == ["Add", "Neg", "x", "y"]


def test_patterns_are_shown_as_they_are_written() -> None:
    texts = ("x", "Mul(Add(x, y), z)", "Transpose(x, perm=p)", "Split(Neg(x), axis=a, sizes=(1, b[0]))[1]")
    assert [str(Side(text, "here").pattern("OP")) for text in texts] == list(texts)
    for rule in library():
        for side in (rule.left, rule.right):
            assert Side(str(side), rule.name).pattern("OP") == side
