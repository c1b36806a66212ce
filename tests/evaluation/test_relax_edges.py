"""The worker of the Relax table follows the edges that a splice has really made."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("tvm") is None, reason="apache-tvm is not installed"),
]

ROOT = Path(__file__).parents[2]

CHILD = """
import json
import evaluation.oatest.relax.worker as worker
from tvm import relax
import tvm_ffi
from miscompile.targets.tvm.relax import splice as sewing
from miscompile.targets.tvm.relax import text

def parse(script):
    return relax.transform.Normalize()(text.parse(script, []))

PATTERN = parse('''
@I.ir_module
class Module:
    @R.function
    def pattern(hole0: R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((2, 3), "float32")):
        with R.dataflow():
            lv = R.sin(hole0)
            lv1 = R.nn.relu(lv)
            result = (lv1,)
            R.output(result)
        return result
''')

def program(*lines, results="(e,)"):
    body = "".join(f"            {line}\\n" for line in lines)
    return parse(f'''
@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((2, 3), "float32"), b: R.Tensor((2, 3), "float32")):
        with R.dataflow():
{body}            out = {results}
            R.output(out)
        return out
''')
"""


def told(script: str) -> Any:
    """Run `script` behind CHILD, in a process of its own; return the JSON that it prints."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{CHILD}{script}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_marks_change_no_splice_and_the_edges_are_those_that_splicing_tells() -> None:
    found = told("""
seed = program("c = R.exp(a)", "d = R.multiply(c, b)", "e = R.tanh(d)")
found = []
for number in range(24):
    call = number % 3 == 0
    plain, _ = sewing.splice(seed, PATTERN, number, call)
    module, facts = sewing.splice(seed, worker.marked(PATTERN), number, call)
    edges = worker.edges(module)
    found.append([tvm_ffi.structural_equal(plain, module), bool(facts.inner_in) == edges["into"],
                  bool(facts.inner_out) == edges["out"], edges["alive"]])
print(json.dumps(found))
""")
    assert all(map(all, found))


@pytest.mark.parametrize(
    ("lines", "results", "edges"),
    [
        (("c = R.exp(a)", "inside = R.sin(c)", "e = R.tanh(inside)"), "(e,)", "into fed out alive"),
        (("c = R.exp(a)", "inside = R.sin(a)", "e = R.tanh(inside)"), "(e,)", "out alive"),
        (('c = R.ones((2, 3), "float32")', "inside = R.sin(c)", "e = R.tanh(inside)"), "(e,)", "into out alive"),
        (("c = R.exp(a)", "inside = R.sin(c)", "e = R.tanh(a)"), "(e,)", "into fed"),
        (("c = R.exp(a)", "inside = R.sin(c)", "e = R.tanh(inside)"), "(c,)", "into fed out"),
        (("c = R.exp(a)", "bridge = R.negative(c)", "inside = R.sin(bridge)", "e = (inside, c)"), "(e,)", "into fed"),
        (
            ("c = R.exp(a)", "inside = R.sin(b)", "blend = R.add(inside, c)", "d = (blend, c)", "e = R.concat(d)"),
            "(e,)",
            "out alive",
        ),
    ],
    ids=["both", "parameter", "constant", "unread", "dead", "bridge", "tuple"],
)
def test_edges(lines: tuple[str, ...], results: str, edges: str) -> None:
    script = f"found = worker.edges(program(*{lines!r}, results={results!r}))\nprint(json.dumps(found))"
    found = told(script)
    assert " ".join(name for name in ("into", "fed", "out", "alive") if found[name]) == edges
