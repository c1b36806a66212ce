"""Structural operands: their places exist, each has one role, and who asks gets what it needs."""

from typing import get_args

import onnx
import pytest

from miscompile.ops.operand_roles import structural_operands, wanted_constant
from miscompile.ops.spec import Role

ROLES: tuple[Role, ...] = get_args(Role)


def most_inputs(op: str) -> int:
    """Return the largest number of inputs that any version of an operator of the standard takes."""
    return int(max(schema.max_input for schema in onnx.defs.get_all_schemas_with_history() if schema.name == op))


@pytest.mark.parametrize("role", ROLES)
def test_every_place_is_an_operand_of_the_standard(role: Role) -> None:
    for op, places in structural_operands(role).items():
        assert max(places) < most_inputs(op), op


def test_an_operand_has_one_role() -> None:
    rows = [(op, place) for role in ROLES for op, places in structural_operands(role).items() for place in places]
    assert len(rows) == len(set(rows))


def test_roles_are_joined() -> None:
    assert structural_operands("shape")["Pad"] == {1, 3}
    assert structural_operands("shape", "setting")["Pad"] == {1, 2, 3}
    assert "Pow" not in wanted_constant()
    assert wanted_constant()["Pad"] == {1, 2, 3}


def test_what_inference_reads_as_data_is_structural() -> None:
    """Operands of a fixed integer type, beside operands of a free one, are axes, sizes, indices and the like."""
    indices = {
        "Gather",
        "GatherElements",
        "GatherND",
        "ScatterElements",
        "ScatterND",
        "Scatter",
        "ArrayFeatureExtractor",
    }
    found = {
        (schema.name, place)
        for schema in onnx.defs.get_all_schemas()
        if schema.domain == "" and schema.name not in indices
        for place, formal in enumerate(schema.inputs)
        if formal.type_str == "tensor(int64)"
    }
    known = wanted_constant()
    missing = {(op, place) for op, place in found if place not in known.get(op, ())}
    assert len(found) > 20
    assert missing == {("Attention", 6), ("ReverseSequence", 1)}, "lengths of sequences, one for each row, are data"
