"""The parent never imports a compiler: a crash, a leak or a slow start of one is a worker's business."""

import json
import subprocess
import sys

import pytest

COMPILERS = (
    "onnxruntime",
    "torch",
    "tensorflow",
    "jax",
    "openvino",
    "tvm",
    "iree",
    "tinygrad",
    "tensorrt",
    "hidet",
    "ai_edge_litert",
)
CODE = """
import json, sys
from importlib import import_module
import_module("miscompile.cli.main")
{more}
print(json.dumps(sorted(name.partition(".")[0] for name in sys.modules)))
"""
EVERY_VERB = """
import click
from miscompile.cli.main import VERBS, program
for verb in VERBS:
    program.get_command(click.Context(program), verb)
from miscompile.targets.registry import target_names, about
for name in target_names():
    about(name)
"""


def modules(more: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", CODE.replace("{more}", more)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stdout.splitlines()[-1]))


@pytest.mark.parametrize("more", ["", EVERY_VERB], ids=["main", "every verb and target"])
def test_no_compiler_is_imported(more: str) -> None:
    loaded = modules(more)
    assert "miscompile" in loaded
    assert loaded.isdisjoint(COMPILERS)


def test_the_bare_command_starts_light() -> None:
    assert modules("").isdisjoint({"onnx", "numpy", "rich", "jinja2"}), "`miscompile --help` must not pay for these"
