"""Tensors go to ml_dtypes and come back with every bit."""

import numpy as np
import pytest

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.foreign import from_foreign, to_foreign


@pytest.mark.parametrize("dtype", PLAIN)
def test_round_trip(dtype: str) -> None:
    low = -1 if DTYPES[dtype].kind in ("float", "int") else 0
    value = tensor(np.array([[0, 1], [low, 1]]), dtype)
    native = to_foreign(value)
    assert native.shape == (2, 2)
    assert native.astype(np.float64).tolist() == [[0, 1], [low, 1]]
    assert from_foreign(native).same(value)


def test_scalars_and_empty_arrays_keep_their_shapes() -> None:
    for shape in ((), (0, 3)):
        value = tensor(np.zeros(shape), "float8e5m2")
        assert from_foreign(to_foreign(value)).shape == shape


def test_text_becomes_strings() -> None:
    assert from_foreign(np.array(["a", "b"])).dtype == "string"
    assert from_foreign(np.array([b"a"], object)).same(Tensor("string", np.array([b"a"], object)))
