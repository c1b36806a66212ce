"""The examples of `docs/api.md` are one session that runs as it stands there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_the_examples_run(tmp_path: Path, cache: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert len(blocks) >= 7
    script = tmp_path / "session.py"  # a script without `if __name__ == "__main__"`
    script.write_text("\n".join(blocks), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "smallest.onnx").is_file()
    assert "1 of 40 elements are wrong; at [2, 3]" in done.stdout
    assert "OperandOrdering" in done.stdout
