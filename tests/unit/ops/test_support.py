"""The support table: keys that are taken, traits that explain refusals, and details where nothing does."""

from collections.abc import Iterable

from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Facts
from miscompile.ops.spec import Call, Operand
from miscompile.ops.support import (
    TABLES,
    CallClass,
    Support,
    SupportAnswer,
    call_class_key,
    detail_of,
    family_of,
    gather,
    key_of,
    support_from,
    traits_of,
)

OPSET = 21


def lrn(shape: tuple[int, ...], dtype: str = "float32", **settings: PlainValue) -> Call:
    return Call("LRN", (Operand("x", dtype, shape, Facts(0, 1)),), attributes(settings))


def conv(dilations: tuple[int, ...], auto_pad: str, dtype: str = "float32", group: int = 1) -> Call:
    operands = (Operand("x", dtype, (1, 4, 5), Facts(0, 1)), Operand("w", dtype, (4, 4 // group, 3), Facts(0, 1)))
    return Call("Conv", operands, attributes({"dilations": dilations, "auto_pad": auto_pad, "group": group}))


def types(call: Call) -> tuple[TensorType, ...]:
    return (TensorType(call.operand(0).dtype, call.operand(0).shape),)


def answer(call: Call, taken: bool) -> SupportAnswer:
    kinds = types(call)
    return SupportAnswer(
        key_of(call, kinds, OPSET), detail_of(call, kinds, OPSET), family_of(call), frozenset(traits_of(call)), taken
    )


def table(taken: Iterable[Call], refused: Iterable[Call]) -> Support:
    return gather([*(answer(call, True) for call in taken), *(answer(call, False) for call in refused)])


def admits(support: Support, call: Call) -> bool:
    return support.admits(call, types(call), OPSET)


def test_a_key_that_was_never_taken_is_not_admitted() -> None:
    support = table([lrn((1, 2, 3, 4), size=3)], [lrn((1, 2, 3, 4), "float64", size=3)])
    assert admits(support, lrn((1, 2, 3, 4), size=3))
    assert not admits(support, lrn((1, 2, 3, 4), "float64", size=3))
    assert not admits(support, lrn((1, 2, 3, 4), "float16", size=3))


def test_a_trait_of_refused_calls_alone_is_barred_in_every_dtype() -> None:
    fine = [lrn((1, 2, 3, 4), dtype, size=3) for dtype in ("float32", "float16")]
    support = table(fine, [lrn((1, 2, 3, 4), size=4), lrn((1, 2, 3), size=3)])
    assert support.barred == {"LRN|size=4", "LRN|0:rank3"}
    assert admits(support, lrn((7, 2, 3, 4), size=3))
    assert not admits(support, lrn((1, 2, 3, 4), "float16", size=4))
    assert not admits(support, lrn((0, 2, 3), "float16", size=3))


def test_a_trait_may_be_barred_with_one_string_attribute_only() -> None:
    fine = [conv((1,), "VALID"), conv((2,), "VALID"), conv((1,), "SAME_UPPER"), conv((1,), "SAME_LOWER")]
    support = table(fine, [conv((2,), "SAME_UPPER"), conv((3,), "SAME_UPPER", group=2)])
    assert support.barred == {"Conv auto_pad=SAME|dilations=odd"}
    assert not admits(support, conv((2,), "SAME_LOWER"))
    assert admits(support, conv((2,), "VALID"))
    assert admits(support, conv((1,), "SAME_UPPER", group=2))


def test_one_refusal_of_a_key_that_is_never_taken_bars_no_trait() -> None:
    fine = [conv((1,), "VALID"), conv((1,), "SAME_UPPER", "float16"), conv((1,), "VALID", "float16")]
    support = table(fine, [conv((2,), "SAME_UPPER")])
    assert not support.barred
    assert not admits(support, conv((2,), "SAME_UPPER"))


def test_where_no_trait_explains_a_refusal_details_decide() -> None:
    fine = [conv((1,), "VALID", group=2), conv((2,), "VALID", group=1)]
    support = table([*fine, conv((1,), "VALID", group=1)], [conv((2,), "VALID", group=2)])
    assert not support.barred
    assert admits(support, conv((2,), "VALID", group=1))
    assert not admits(support, conv((2,), "VALID", group=2))


def test_a_table_survives_being_written_down() -> None:
    support = table([lrn((1, 2, 3, 4), size=3)], [lrn((1, 2, 3, 4), size=4)])
    assert support_from({name: sorted(getattr(support, name)) for name in TABLES}) == support


def _call(op: str, *dtypes: str, **given: PlainValue) -> Call:
    inputs = tuple(Operand(f"x{place}", dtype, (2,), Facts(-1, 1)) for place, dtype in enumerate(dtypes))
    return Call(op, inputs, attributes(given))


def test_an_operator_is_offered_in_the_dtype_of_the_operand_that_decides() -> None:
    support = Support({"Where-16(bool,float32,float32)float32", "ConstantOfShape-21(int64)int8"})
    assert support.offers("Where", "float32", 16, 1)
    assert not support.offers("Where", "bool", 16, 1)
    assert not support.offers("Where", "float32", 9, 1)
    assert support.offers("ConstantOfShape", "int8", 21, ~0)
    assert Support(open=True).offers("Where", "int8", 9, 1)


def test_calls_of_one_form_differ_in_shapes_and_in_numbers_that_name_no_type() -> None:
    assert call_class_key(_call("Concat", "int8", "int8", axis=0), 18) == call_class_key(
        _call("Concat", "int8", "int8", axis=1), 17
    )
    assert call_class_key(_call("Cast", "int8", to=1), 18) != call_class_key(_call("Cast", "int8", to=7), 18)
    assert call_class_key(_call("Gelu", "float32", approximate="tanh"), 20) != call_class_key(
        _call("Gelu", "float32"), 20
    )
    assert call_class_key(_call("Transpose", "int8"), 18) != call_class_key(_call("Transpose", "int8"), 21)
    assert call_class_key(_call("Add", "int8", "int8"), 18) != call_class_key(_call("Add", "int8"), 18)


def test_a_form_says_whether_and_how_its_calls_are_taken() -> None:
    key = "LRN-13(float32)float32"
    taken, mixed = Support({key}, barred={"LRN|size=2"}), Support(mixed={key})
    call, other = _call("LRN", "float32", size=2), _call("LRN", "float32", size=3)
    types = (TensorType("float32", (2,)),)
    known = taken.call_class_of(call, types, 18)
    assert known == CallClass(("float32",), mixed=False, barred=frozenset({"size=2"}))
    assert not taken.suits(known, call, types, 18)
    assert taken.suits(known, other, types, 18)
    assert mixed.call_class_of(call, types, 18) == CallClass(("float32",), mixed=True, barred=frozenset())
    assert not mixed.admits(call, types, 18)
    assert Support().call_class_of(call, types, 18) is None


def test_the_check_of_forms_gets_the_forms_that_the_target_refuses() -> None:
    known = Support({"Abs-13(float32)float32"}, {"LRN-13(float32)float32"}, barred={"LRN|size=2"}, refused={"Det-11()"})
    free = known.of_any_form()
    assert (free.taken, free.refused) == ({"Abs-13(float32)float32", "LRN-13(float32)float32"}, {"Det-11()"})
    assert not free.barred
    assert not free.mixed
    assert known.barred
