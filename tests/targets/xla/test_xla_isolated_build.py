"""XLA's reference build: one compilation with barriers gives what running call by call gives."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from miscompile.targets.xla.environment import prepare

pytestmark = [pytest.mark.compiler, pytest.mark.process]
needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here")

# A process that has compiled must not fork any more, and the flags are read when it starts: so it is one of its own.
COMPARED = """
import json
import jax, jax.numpy as jnp, numpy as np
from jax import lax
from types import SimpleNamespace
from miscompile.targets.xla.isolated_build import isolated, results_of

jax.config.update("jax_enable_x64", True)
x = np.linspace(-2.0, 2.0, 24, dtype=np.float32).reshape(4, 6)
functions = {
    "elementwise": lambda a: [jax.nn.softplus(a) * 3 - a, jnp.where(a > 0, a, -a)],
    "products": lambda a: [a @ a.T, jax.nn.softmax(a @ a.T)],
    "orders": lambda a: [jnp.sort(a), *lax.top_k(a, 2), jnp.cumsum(a, 1)],
    "cut": lambda a: [lax.pad(a, np.float32(0), ((-1, 1, 0), (0, -2, 0)))],
    "constants": lambda a: [jnp.ones(3), a],
    "narrow": lambda a: [(a / 7).astype(jnp.float8_e4m3fnuz).astype(jnp.float32)],
    "loops": lambda a: [
        lax.while_loop(lambda s: s[0] < a.shape[0] - 1, lambda s: (s[0] + 1, s[1] + a[s[0]]), (0, a[0]))[1],
        *lax.scan(lambda s, row: (s * 0.5 + row, s.sum()), a[0], a, reverse=True),
    ],
    "branches": lambda a: [lax.cond(a.sum() > 1e3, lambda b: b - 1, lambda b: jnp.tanh(b) + a.max(), a)],
}
found = {}
for name, function in functions.items():
    compiled = isolated(function, [jax.ShapeDtypeStruct(x.shape, x.dtype)])
    with jax.disable_jit():
        plain = [np.asarray(value) for value in function(jnp.asarray(x))]
    results = [np.asarray(value) for value in compiled(jnp.asarray(x))]
    found[name] = [bool(np.allclose(a, b, 1e-6, 1e-7)) for a, b in zip(plain, results, strict=True)]
older = SimpleNamespace(  # up to JAX 0.6 the parameters of a primitive came in a pair with functions
    name="older",
    multiple_results=False,
    get_bind_params=lambda params: ((), params),
    bind=lambda operand, more: operand + more,
)
equation = SimpleNamespace(primitive=older, params={"more": 2})
found["older"] = [float(results_of(equation, [jnp.float32(1)], lambda value: value)[0]) == 3]
print(json.dumps(found))
"""


@needs_jax
def test_barriers_give_what_single_calls_give() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COMPARED],
        env={**os.environ, **prepare()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "elementwise": [True] * 2,
        "products": [True] * 2,
        "orders": [True] * 4,
        "cut": [True],
        "constants": [True] * 2,
        "narrow": [True],
        "loops": [True] * 3,
        "branches": [True],
        "older": [True],
    }
