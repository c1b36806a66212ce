"""Symbolic tensors of ncnn: which blob holds a tensor, and which of its axes."""

import numpy as np
import pytest

from miscompile.targets.ncnn.tensors import (
    aligned,
    along,
    as_blob,
    axes_of,
    constant,
    given,
    paired,
    reshaped,
    slim,
    tensor,
    whole,
)


def test_a_blob_lacks_the_first_of_three_or_more_axes_if_its_size_is_one() -> None:
    assert slim((1, 2, 3)) == (2, 3)
    assert slim((1, 2)) == (1, 2)
    assert slim((2, 2, 3)) == (2, 2, 3)
    assert slim((1, 2, 3, 4, 5)) == (2, 3, 4, 5)
    assert slim(()) == (1,)
    assert whole((1, 2, 3)) == (1, 2, 3)


@pytest.mark.parametrize("shape", [(2, 2, 2, 2, 2), (0, 3)])
def test_other_shapes_have_no_blob(shape: tuple[int, ...]) -> None:
    with pytest.raises(NotImplementedError, match="no lowering"):
        slim(shape)


def test_an_axis_that_the_blob_lacks_is_brought_back() -> None:
    x = given((1, 2, 3))
    blob, places, gone = along(x, 1, -1)
    assert (blob.sizes, places, gone) == ((2, 3), [0, 1], 1)
    blob, places, gone = along(x, 0, 2)
    assert (blob.sizes, places, gone) == ((1, 2, 3), [0, 2], 0)
    assert blob.call is not None
    assert blob.call.layer == "Reshape"
    assert blob.call.params == {2: 1, 1: 2, 0: 3}


def test_operands_get_equally_many_axes() -> None:
    blobs, shape = aligned(given((3, 1, 4)), given((4,)))
    assert shape == (3, 1, 4)
    assert [blob.sizes for blob in blobs] == [(3, 1, 4), (1, 1, 4)]
    assert axes_of((2, 3, 4, 5)) == {2: 2, 11: 3, 1: 4, 0: 5}


def test_a_constant_of_one_element_is_a_parameter() -> None:
    y = paired("sub", tensor(2), given((3, 4)))
    assert y.blob.call is not None
    assert y.blob.call.params == {0: 7, 1: 1, 2: 2.0}
    assert paired("sub", given((3, 1)), given((1, 4))).shape == (3, 4)


def test_constants_are_reshaped_at_once_and_integers_are_refused() -> None:
    x = reshaped(tensor(np.arange(6.0)), (2, 3))
    assert x.blob.call is None
    np.testing.assert_array_equal(constant(x, "x"), [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(NotImplementedError, match="constant of float32"):
        constant(given((2,)), "x")
    with pytest.raises(NotImplementedError, match="int64"):
        as_blob(tensor([1, 2], "int64"), (2,))
