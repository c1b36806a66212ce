"""What is read out of documentation: parameters, kinds, lists, bounds and ranks."""

import pytest

from miscompile.harvest.constraints.documents import (
    DocumentedParameter,
    bounds_in,
    constraint,
    documented_parameters,
    head_of,
    kinds_in,
    listed_in,
    ranks_in,
)

DOC = """
shrink(input, dim, *, mode='soft', out=None) -> Tensor

Shrinks a tensor.

Args:
    input (Tensor): the tensor, 2-D or 3-D
    dim (int or tuple of ints, optional): the dimension
        to shrink: along it. Default: None
    mode (str): ``'soft'`` | ``'hard'``. Default: ``'soft'``
    p (float): probability of an element
"""


def test_parameters_are_found_with_what_is_said_of_them() -> None:
    said = documented_parameters(DOC)
    assert said["input"] == DocumentedParameter("Tensor", "the tensor, 2-D or 3-D")
    assert said["dim"].text.startswith("the dimension to shrink: along it.")
    assert head_of(DOC) == [
        ("input", None, False),
        ("dim", None, False),
        ("mode", "'soft'", True),
        ("out", "None", True),
    ]


def test_a_constraint_puts_it_together() -> None:
    said = documented_parameters(DOC)
    mode = constraint("mode", "'soft'", "", said)
    assert mode is not None
    assert (mode.kinds, mode.values, mode.required, mode.default) == (("text",), ("soft", "hard"), False, "soft")
    given = constraint("input", None, "", said)
    assert given is not None
    assert (given.kinds, given.ranks, given.required) == (("tensor",), (2, 3), True)
    dim = constraint("dim", None, "", said)
    assert dim is not None
    assert dim.axis
    assert set(dim.kinds) == {"int", "ints"}
    assert constraint("out", "None", "", said) is None
    assert constraint("nobody_knows", None, "", said) is None


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("Accepted range is [-2, 5] here", (-2.0, 5.0)),
        ("a number between 0 and 1", (0.0, 1.0)),
        ("probability of an element to be zeroed", (0.0, 1.0)),
        ("a non-negative integer", (0.0, None)),
        ("must be positive", (1.0, None)),
        ("some number", (None, None)),
    ],
)
def test_bounds(text: str, bounds: tuple[float | None, float | None]) -> None:
    assert bounds_in(text) == bounds


def test_lists_kinds_and_ranks() -> None:
    assert listed_in('Either `"valid"` or `"same"`, as "valid" does') == ("valid", "same")
    assert listed_in("auto_pad must be either NOTSET, SAME_UPPER, SAME_LOWER or VALID.") == (
        "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID",
    )  # fmt: skip
    assert listed_in("a text") == ()
    assert kinds_in("Tensor") == ("tensor",)
    assert kinds_in("sequence of Tensors") == ("tensors",)
    assert kinds_in("float or Tensor") == ("tensor", "float")
    assert kinds_in("int or tuple of ints") == ("ints", "int")
    assert kinds_in("torch.dtype, optional") == ("dtype",)
    assert ranks_in("3-D, 4-D or 5D") == (3, 4, 5)
    assert ranks_in("a tensor of shape (batch, channels, length)") == (3,)
