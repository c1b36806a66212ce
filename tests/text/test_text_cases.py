"""Text in, text out: every file of `cases` parses, obeys the ONNX rules, and prints back as it stands.

Comment lines (`#` first) say what a file shows and are not part of the comparison.
"""

from pathlib import Path

import pytest

from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.read import read
from miscompile.graph.text.parser import parse_model
from miscompile.graph.text.printer import print_model

CASES = sorted((Path(__file__).parent / "cases").glob("*.graph"))


def test_there_are_cases() -> None:
    assert len(CASES) >= 12


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_text_in_text_out(path: Path) -> None:
    text = "".join(line for line in path.read_text("utf-8").splitlines(keepends=True) if not line.startswith("#"))
    model = parse_model(text)
    check(model)
    assert print_model(model) == text
    assert print_model(read(emit(model))) == text
