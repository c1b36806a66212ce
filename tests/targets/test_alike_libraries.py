"""The assertion on modules of torch and functions of JAX, with the real compilers and with broken ones."""

from collections.abc import Callable
from typing import Any

import pytest

from miscompile.base.errors import UsageError
from miscompile.testing.alike import assert_compiles_alike

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # the libraries' own
]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="the extra `inductor` installs it")


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="the extra `xla` installs it")


def a_module(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))


def test_torch_compile_of_a_module(torch: Any) -> None:
    assert_compiles_alike(a_module(torch), inputs=(torch.randn(2, 8),), budget=3)


def test_a_module_exported_to_onnx(torch: Any) -> None:
    pytest.importorskip("onnxscript", reason="torch exports through it")
    assert_compiles_alike(a_module(torch), "onnxruntime", inputs=(torch.randn(2, 8),), budget=3)


def test_a_wrong_torch_compile(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(module: Callable[..., Any], **_: object) -> Callable[..., Any]:
        return lambda *inputs: module(*inputs) * 1.001

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(AssertionError, match=r"torch\.compile differs"):
        assert_compiles_alike(a_module(torch), inputs=(torch.randn(2, 8),), budget=3)


def test_a_module_that_is_not_deterministic(torch: Any) -> None:
    class Noisy(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return x + torch.rand_like(x)

    with pytest.raises(UsageError, match="not deterministic"):
        assert_compiles_alike(Noisy(), inputs=(torch.randn(2, 8),))
    with pytest.raises(UsageError, match="example inputs"):
        assert_compiles_alike(Noisy())


def test_jit_of_a_function(jax: Any) -> None:
    def function(x: Any, places: Any) -> Any:
        return {"y": jax.numpy.tanh(x @ x.T).sum(axis=0)[places]}

    x = jax.random.normal(jax.random.key(0), (4, 8))
    assert_compiles_alike(function, inputs=(x, jax.numpy.asarray([0, 3])), budget=3)


def test_a_wrong_jit(jax: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "jit", lambda function: lambda *inputs: function(*inputs) + 1)
    with pytest.raises(AssertionError, match=r"jax\.jit differs"):
        assert_compiles_alike(lambda x: x * 2, inputs=(jax.numpy.ones(3),), budget=1)
