"""Monte-Carlo noise in a Relax program: every float operand, and every float result, is multiplied by an input of
its own.

For other cases `oracles/instrumentation.py` instruments the ONNX program, by the same steps. A program that the
adapter has changed needs its own instrumentation, because the spread of correct results is a property of the program
that ran.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from tvm import relax
from tvm.ir import Call, Op

from miscompile.base.dtypes import DTYPES
from miscompile.targets.tvm.relax.functions import operands
from miscompile.targets.tvm.relax.hazards import is_float
from miscompile.targets.tvm.relax.seams import assembled, is_plain, rebound, sizes_of

ULPS = 8

_APPROXIMATED = frozenset({
    "sigmoid", "tanh", "erf", "nn.softmax", "nn.log_softmax", "sin", "cos", "tan", "nn.gelu", "nn.gelu_tanh", "nn.silu",
    "nn.softplus", "nn.selu", "nn.leakyrelu", "exp", "sinh", "cosh", "atan", "asin", "acos", "log",
})  # fmt: skip
"""Functions that are approximated to an absolute error: near zero their results have no correct digits."""


@dataclass(frozen=True, slots=True)
class RelaxNoise:
    """A noise input of a shape and element type: its elements are `centre` plus or minus at most `step`."""

    shape: tuple[int, ...]
    dtype: str
    centre: float
    step: float

    def drawn(self, number: int, rng: np.random.Generator) -> Any:
        """Return the noise of one run: zero for 0, `+step` everywhere for 1, `-step` everywhere for 2, otherwise
        random."""
        signs = {0: 0.0, 1: 1.0, 2: -1.0}.get(number)
        moved = rng.uniform(-1, 1, self.shape) if signs is None else np.full(self.shape, signs)
        kind = ml_dtypes.bfloat16 if self.dtype == "bfloat16" else np.dtype(self.dtype)
        return (self.centre + self.step * moved).astype(kind)


def instrumented(module: Any) -> tuple[Any, tuple[RelaxNoise, ...]]:
    """Return `module` instrumented with noise, and the noise inputs, which are additional inputs of `main`.

    Functions are inlined first, so that they contain noise too; loop programs have noise on their operands and
    results. Raises NotImplementedError for a program with bindings that cannot be rewritten.
    """
    module = relax.transform.InlinePrivateFunctions()(module)
    place = module.get_global_var("main")
    main = module[place]
    instrumenter = NoiseInstrumenter(relax.BlockBuilder(module))
    parts = []
    for block in main.body.blocks:
        part: list[Any] = []
        for binding in block.bindings:
            if not is_plain(binding):
                raise NotImplementedError("noise in a program with branches or casts of sizes")
            part += instrumenter.instrumented(binding)
        parts.append((isinstance(block, relax.DataflowBlock), part))
    body = main.body.body
    if not isinstance(body.ty, relax.TupleType):
        last: list[Any] = []
        body = instrumenter.moved(body, last)
        parts.append((False, last))
    params = [*main.params, *instrumenter.params]
    noisy = relax.Function(params, relax.SeqExpr(main.body.blocks, body), main.ret_ty, True, main.attrs)
    if "num_input" in (main.attrs or {}):
        noisy = noisy.with_attr("num_input", len(params))
    module = module.clone()
    module.update_func(place, assembled(noisy, parts))
    return relax.transform.Normalize()(module), tuple(instrumenter.noises)


class NoiseInstrumenter:
    """Builds noisy bindings; `params` are the additional inputs of the function, `noises` their values."""

    def __init__(self, builder: Any) -> None:
        self.params: list[Any] = []
        self.noises: list[RelaxNoise] = []
        self._builder = builder

    def instrumented(self, binding: Any) -> list[Any]:
        """Return `binding` with noisy operands and the bindings that compute them, and with a noisy result if it is
        approximated."""
        made: list[Any] = []
        for place, var in enumerate(operands(binding.value)):
            noisy = self.moved(var, made)
            binding = binding if noisy is var else rebound(binding, place, noisy)
        name = binding.value.op.name if isinstance(binding.value, Call) and isinstance(binding.value.op, Op) else ""
        if name.removeprefix("relax.") not in _APPROXIMATED or not self._takes(binding.var):
            return [*made, binding]
        rough = relax.DataflowVar("rough", binding.var.ty)
        noise = self._noise(binding.var, 0.0)
        value = self._builder.normalize(relax.op.add(rough, noise))
        return [*made, relax.VarBinding(rough, binding.value), relax.VarBinding(binding.var, value)]

    def moved(self, var: Any, made: list[Any]) -> Any:
        """Return `var` times noise, whose binding is added to `made`; `var` itself if it is not a float."""
        if not self._takes(var):
            return var
        value = self._builder.normalize(relax.op.multiply(var, self._noise(var, 1.0)))
        made.append(relax.VarBinding(relax.DataflowVar("noisy", value.ty), value))
        return made[-1].var

    def _takes(self, var: Any) -> bool:
        return sizes_of(var.ty)[1] and str(var.ty.dtype) in ("float16", "float32", "float64", "bfloat16")

    def _noise(self, var: Any, centre: float) -> Any:
        assert is_float(var.ty.dtype)
        dtype = str(var.ty.dtype)
        self.noises.append(RelaxNoise(sizes_of(var.ty)[0], dtype, centre, ULPS * DTYPES[dtype].eps))
        self.params.append(relax.Var(f"noise{len(self.params)}", var.ty))
        return self.params[-1]
