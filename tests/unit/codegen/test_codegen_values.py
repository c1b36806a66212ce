"""Parameters as Python source: what is written evaluates to the very value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.dtypes import DTYPES
from miscompile.codegen.layout import lay_out
from miscompile.codegen.literals import array_code, literal, native, number_code
from miscompile.codegen.values import Dialect, spell, spell_call, spell_drawn
from miscompile.core.tensor import Tensor, tensor
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value

NATIVE = ["float32", "float16", "float64", "int8", "uint16", "int64", "bool", "complex64", "complex128"]
DIALECT = Dialect(
    lambda value: array_code(value), spell_drawn, lambda name: f"'{name.name}'", lambda slot: f"x{slot.index}"
)


def evaluated(source: str, **names: Any) -> Any:
    return eval(source, {"np": np, "base64": __import__("base64"), **names})


def drawn() -> st.SearchStrategy[Drawn]:
    shapes = st.lists(st.integers(0, 9), max_size=3).map(tuple)
    return st.builds(Drawn, st.sampled_from(NATIVE), shapes, st.just(-2.5), st.just(7.0), st.integers(0, 9))


@settings(max_examples=100)
@given(drawn(), st.booleans())
def test_arrays_keep_every_bit(recipe: Drawn, odd: bool) -> None:
    value = recipe.tensor()
    if odd and DTYPES[value.dtype].kind in ("float", "complex") and value.array.size:
        value.array.flat[0] = -0.0
        value.array.flat[-1] = np.nan
    found = evaluated(lay_out(array_code(value)))
    assert found.dtype == value.array.dtype
    assert Tensor(value.dtype, found).same(value)


@settings(max_examples=100)
@given(drawn())
def test_recipes_draw_the_same_numbers(recipe: Drawn) -> None:
    found = np.asarray(evaluated(lay_out(spell_drawn(recipe))))
    assert Tensor(recipe.dtype, found).same(recipe.tensor())


def test_recipes_of_types_that_numpy_lacks_are_refused() -> None:
    assert not native("bfloat16")
    with pytest.raises(ValueError, match="numpy draws no bfloat16"):
        spell_drawn(Drawn("bfloat16", (2,)))


def plain() -> st.SearchStrategy[Value]:
    leaf = (
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
        | st.complex_numbers(allow_nan=False)
    )  # fmt: skip
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=3), inner, max_size=2)
        ),
        max_leaves=6,
    )


@settings(max_examples=200)
@given(plain())
def test_plain_values_evaluate_to_themselves(value: Value) -> None:
    found = evaluated(lay_out(spell(value, DIALECT)))
    assert repr(found) == repr(value)


def test_what_python_lacks_is_spelled_by_the_dialect() -> None:
    value = (
        SliceValue(0, None, 2),
        Name("special", "Ellipsis"),
        Name("dtype", "int8"),
        Slot(3, "int8", ()),
        Made("f", (1,)),
    )
    assert lay_out(spell(value, DIALECT)) == "(slice(0, None, 2), Ellipsis, 'int8', x3, f(1))"
    held = Held(tensor(np.array([1.5, 2.0], np.float32)))
    assert lay_out(spell([held], DIALECT)) == "[np.array([1.5, 2.0], np.float32)]"


def test_keywords_that_are_no_identifiers_come_by_way_of_a_dict() -> None:
    source = lay_out(spell_call("dict", (), {"a": 1, "class": 2, "x y": 3}, DIALECT))
    assert evaluated(source) == {"a": 1, "class": 2, "x y": 3}


@settings(max_examples=200)
@given(plain())
def test_a_literal_evaluates_to_itself_and_stands_on_one_line(value: object) -> None:
    source = literal(value)
    assert repr(evaluated(source)) == repr(value)
    assert "\n" not in source


def test_numbers_without_a_literal_are_names_where_numpy_is_at_hand() -> None:
    assert [number_code(value, np.float32) for value in (np.nan, np.inf, -np.inf)] == ["np.nan", "np.inf", "-np.inf"]
    assert [number_code(value) for value in (np.nan, -np.inf)] == ['float("nan")', 'float("-inf")']
    assert number_code(complex(np.inf, -0.0)) == 'complex(float("inf"), -0.0)'
    assert number_code(complex(np.inf, -0.0), np.complex64) == "complex(np.inf, -0.0)"


def test_numbers_are_the_shortest_of_their_type() -> None:
    assert number_code(np.float32(0.1), np.float32) == "0.1"
    assert number_code(np.float16(65504), np.float16) == "65500.0"
    assert number_code(1e20) == "1e20"
    assert number_code(2**70) == str(2**70)


def test_values_of_other_types_have_no_literal() -> None:
    for value in (object(), b"raw", np.array(["text"])):
        with pytest.raises(TypeError, match="is no number"):
            literal(value)
