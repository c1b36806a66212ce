"""The support table: keys that are taken, traits that explain refusals, and details where nothing does."""

from collections.abc import Iterable

from miscompile.graph.attributes import Plain, attributes
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Facts
from miscompile.ops.spec import Call, Operand
from miscompile.ops.support import (
    TABLES,
    Answer,
    Support,
    detail_of,
    family_of,
    gather,
    key_of,
    support_from,
    traits_of,
)

OPSET = 21


def lrn(shape: tuple[int, ...], dtype: str = "float32", **settings: Plain) -> Call:
    return Call("LRN", (Operand("x", dtype, shape, Facts(0, 1)),), attributes(settings))


def conv(dilations: tuple[int, ...], auto_pad: str, dtype: str = "float32", group: int = 1) -> Call:
    operands = (Operand("x", dtype, (1, 4, 5), Facts(0, 1)), Operand("w", dtype, (4, 4 // group, 3), Facts(0, 1)))
    return Call("Conv", operands, attributes({"dilations": dilations, "auto_pad": auto_pad, "group": group}))


def types(call: Call) -> tuple[TensorType, ...]:
    return (TensorType(call.operand(0).dtype, call.operand(0).shape),)


def answer(call: Call, taken: bool) -> Answer:
    kinds = types(call)
    return Answer(
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
