"""The reproducer of a toy finding is a Python file that shows the bug."""

import pytest
from jinja2 import Environment, StrictUndefined

from miscompile.core.run import Build
from miscompile.targets.toy.script import TEMPLATE

MODEL = """from onnx import parser
model = parser.parse_model('<ir_version: 9, opset_import: ["" : 20]> g (int32[2] x) => (int32[2] y) {y = Sub(x, x)}')"""


def script(kind: str, **more: object) -> str:
    environment = Environment(
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["literal"] = repr
    values = {
        "title": "t", "message": "m", "versions": {}, "kind": kind, "rule": "bits", "stage": "", "model": MODEL,
        "feeds": 'feeds = [{"x": np.array([1, 2], np.int32)}]', "types": {}, "exotic": False, "imports": [],
        "base64": False, "faulty": Build(), "reference": Build(level="off"), "culprits": ["SelfCancellation"],
        "off": "OFF = []", "tolerance": "0.0", "reason": "r", "signal": 0, "shows": "BUG:", "dies": "DIES:",
    }  # fmt: skip
    return environment.from_string(TEMPLATE).render({**values, **more})


def test_script_shows_the_bug_and_the_culprit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        exec(compile(script("dtype", options={"bugs": "sub_self_dtype"}), "repro.py", "exec"), {})
    assert caught.value.code == 1
    printed = capsys.readouterr().out
    assert "BUG:\nint64 of shape (2,) instead of int32" in printed
    assert "without SelfCancellation the results are right" in printed


def test_script_of_a_healthy_toy_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(script("dtype", options={}), "repro.py", "exec"), {})
    assert "the bug does not show" in capsys.readouterr().out


def test_without_options_every_bug_is_on() -> None:
    assert "BUGS = 'all'" in script("exception")
