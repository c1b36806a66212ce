"""Findings as lit tests of XLA's own repository: the program as HLO text, which `run_hlo_module` compiles and runs.

The tool compares the results of the CPU with those of the reference interpreter, so that a test needs no right values.
Sources: https://openxla.org/xla/tools, https://openxla.org/xla/test_hlo_passes
"""

from typing import Any

import jax
import jax.numpy as jnp

from miscompile.graph.read import read
from miscompile.targets.upstream import UpstreamStory
from miscompile.targets.xla import runner
from miscompile.targets.xla.adapter import lowered_function

_RUN = "// RUN: run_hlo_module --platform=CPU --reference_platform=Interpreter --input_format=hlo"


def lit_test(story: UpstreamStory) -> dict[str, str]:
    """Return `upstream_test.hlo`.

    The inputs of the finding become constants, because the tool draws random values for parameters; optimisation
    barriers keep XLA from folding them.
    """
    runner.configure()
    function = lowered_function(read(story.payload))
    values = [runner.tensor(value.array, value.dtype) for value in story.feed]

    def program() -> Any:  # noqa: ANN401 - one result, or several
        return function(*[jax.lax.optimization_barrier(jnp.asarray(value)) for value in values])

    text = jax.jit(program).lower().as_text(dialect="hlo")
    off = f" --xla_disable_hlo_passes={','.join(story.off)}" if story.off else ""
    level = runner.LEVELS[story.level]
    optimisation = f" --xla_backend_optimization_level={level}" if level not in (None, 3) else ""
    return {"upstream_test.hlo": f"{_RUN}{optimisation}{off} %s\n\n{text.strip()}\n"}
