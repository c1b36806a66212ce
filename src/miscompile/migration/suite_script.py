"""Runs the models beside this file on an ONNX backend and compares its results with the expected ones.

Needs pytest, numpy, onnx and the backend:

    pytest test_suite.py                                    on ONNX Runtime, in its Python interface
    pytest test_suite.py --onnx-backend my_compiler.onnx    on any module with onnx's backend interface
    ONNX_BACKEND=my_compiler.onnx pytest test_suite.py      the same
    ONNX_DEVICE=CUDA pytest test_suite.py                   on another device (CPU unless told)

A file `known_failures.txt` beside this one names tests that are expected to fail, one a line; a test that passes
although it is named there is reported, so that the list stays true.
"""

import ctypes
import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

HERE = Path(__file__).parent
SUITE: dict[str, Any] = json.loads((HERE / "suite.json").read_text("utf-8")) if (HERE / "suite.json").exists() else {}
FOLDER = HERE / str(SUITE.get("kind", ""))


def _known_failures() -> set[str]:
    path = HERE / "known_failures.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def _parameters() -> list[Any]:
    known = _known_failures()
    mark = pytest.mark.xfail(strict=True, reason="named in known_failures.txt")
    return [
        pytest.param(test, id=test["name"], marks=[mark] if test["name"] in known else [])
        for test in SUITE.get("tests", ())
    ]


def _tensors(folder: Path, stem: str) -> list[Any]:
    paths = [folder / f"{stem}_{place}.pb" for place in range(len(list(folder.glob(f"{stem}_*.pb"))))]
    return [numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes())) for path in paths]


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - a module, or a class with its interface
    """The backend named by the option or the environment."""
    name = request.config.getoption("--onnx-backend", None) or os.environ.get("ONNX_BACKEND", "")
    return importlib.import_module(name) if name else OrtBackend


class OrtBackend:
    """ONNX Runtime with onnx's backend interface; its own lacks the element types that numpy lacks."""

    def __init__(self, model: onnx.ModelProto, device: str) -> None:
        import onnxruntime

        self.runtime = onnxruntime
        providers = ["CPUExecutionProvider"] if device == "CPU" else [f"{device}ExecutionProvider"]
        lacking = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
        try:
            self.session = onnxruntime.InferenceSession(model.SerializeToString(), providers=providers)
        except lacking as error:
            pytest.skip(f"there is no kernel: {error}")
        self.types = [info.type.tensor_type.elem_type for info in model.graph.output]

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str) -> bool:
        """Leave it to the session to refuse a model."""
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str) -> "OrtBackend":
        """Return a session."""
        return cls(model, device)

    def run(self, inputs: list[Any]) -> list[Any]:
        """Return the outputs as arrays of the types that the model declares."""
        names = [info.name for info in self.session.get_inputs()]
        if all(array.dtype.isbuiltin == 1 for array in inputs) and not any(map(_foreign, self.types)):
            return list(self.session.run(None, dict(zip(names, inputs, strict=True))))
        feed = {name: self._value(array) for name, array in zip(names, inputs, strict=True)}
        results = self.session.run_with_ort_values(None, feed)
        return [self._array(value, code) for value, code in zip(results, self.types, strict=True)]

    def _value(self, array: Any) -> Any:  # noqa: ANN401 - an array of any type
        make = self.runtime.OrtValue
        if array.dtype.isbuiltin == 1:
            return make.ortvalue_from_numpy(array)
        code = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        if code in _NARROW:
            pytest.skip("the Python interface of ONNX Runtime takes no input of so few bits")
        return make.ortvalue_from_numpy_with_onnx_type(array.view(f"u{array.dtype.itemsize}"), code)

    def _array(self, value: Any, code: int) -> Any:  # noqa: ANN401 - an array of any type
        if not _foreign(code):
            return value.numpy()
        count = int(np.prod(value.shape()))
        size = -(-count // (8 // _NARROW[code])) if code in _NARROW else count * (2 if code == 16 else 1)
        data = ctypes.string_at(value.data_ptr(), size)
        return numpy_helper.to_array(onnx.TensorProto(data_type=code, dims=value.shape(), raw_data=data))


_NARROW = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}
"""Bits of the element types that share bytes, by their numbers in TensorProto."""


def _foreign(code: int) -> bool:
    return bool(onnx.helper.tensor_dtype_to_np_dtype(code).isbuiltin != 1)


def _compare(found: Any, wanted: Any, rtol: float, atol: float) -> None:  # noqa: ANN401 - arrays of any type
    found = np.asarray(found)
    assert found.shape == wanted.shape, f"shape {found.shape}, expected {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        assert found.astype(str).tolist() == wanted.astype(str).tolist()
        return
    assert found.dtype == wanted.dtype, f"elements of type {found.dtype}, expected {wanted.dtype}"
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted)
        return
    if wanted.dtype.kind not in "fc":  # types that numpy lacks
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.parametrize("test", _parameters())
def test_model(test: dict[str, Any], backend: Any) -> None:  # noqa: ANN401 - see above
    """Run one model on every data set."""
    folder = FOLDER / test["name"]
    model = onnx.load(folder / "model.onnx")
    device = os.environ.get("ONNX_DEVICE", "CPU")
    if not backend.is_compatible(model, device):
        pytest.skip("the backend says that it does not take this model")
    prepared = backend.prepare(model, device)
    for place in sorted(folder.glob("test_data_set_*")):
        results = list(prepared.run(_tensors(place, "input")))
        expected = _tensors(place, "output")
        assert len(results) == len(expected)
        for found, wanted in zip(results, expected, strict=True):
            _compare(found, wanted, test["rtol"], test["atol"])
