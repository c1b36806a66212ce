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
from miscompile.targets.xla.apart import apart

jax.config.update("jax_enable_x64", True)
x = np.linspace(-2.0, 2.0, 24, dtype=np.float32).reshape(4, 6)
functions = {
    "elementwise": lambda a: [jax.nn.softplus(a) * 3 - a, jnp.where(a > 0, a, -a)],
    "products": lambda a: [a @ a.T, jax.nn.softmax(a @ a.T)],
    "orders": lambda a: [jnp.sort(a), *lax.top_k(a, 2), jnp.cumsum(a, 1)],
    "constants": lambda a: [jnp.ones(3), a],
    "narrow": lambda a: [(a / 7).astype(jnp.float8_e4m3fnuz).astype(jnp.float32)],
    "control": lambda a: [lax.fori_loop(0, 3, lambda i, b: b + a, a)],
}
found = {}
for name, function in functions.items():
    compiled = apart(function, [jax.ShapeDtypeStruct(x.shape, x.dtype)])
    with jax.disable_jit():
        plain = [np.asarray(value) for value in function(jnp.asarray(x))]
    results = None if compiled is None else [np.asarray(value) for value in compiled(jnp.asarray(x))]
    found[name] = results and [bool(np.allclose(a, b, 1e-6, 1e-7)) for a, b in zip(plain, results, strict=True)]
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
    found = json.loads(done.stdout)
    assert found.pop("control") is None
    assert found == {
        "elementwise": [True] * 2,
        "products": [True] * 2,
        "orders": [True] * 4,
        "constants": [True] * 2,
        "narrow": [True],
    }
