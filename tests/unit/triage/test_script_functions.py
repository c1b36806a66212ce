"""What a script gets of other modules: what it names and whatever that names, word for word."""

from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.triage import inlining
from miscompile.triage.inlining import bare, import_blocks, inlined

FIRST = '''"""A module."""

import json
import os
import os.path
from collections.abc import Sequence
from math import inf, pi

LIMIT: float = pi
"""Why it is so."""

FAR = inf


class Pair:
    """Two values."""

    one: int
    other: int = 2


def outer(values: Sequence[float], *, limit: float = LIMIT) -> "list[float]":
    """Return what is near."""
    found: list[float] = [value for value in values if inner(value) < limit]  # noqa: RUF100
    return found


def inner(value: float) -> float:
    """Return it as it is."""
    same: float
    same = value
    return same


def unused() -> str:
    """Dump a path."""
    return json.dumps(os.path.sep)
'''

SECOND = '''"""Another module."""

from a_first_module import inner


def twice(value: float) -> float:
    """Call it twice."""
    return inner(inner(value))
'''


THIRD = """\
def inner():
    return 2


def once():
    return inner()
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    (tmp_path / "a_first_module.py").write_text(FIRST, "utf-8")
    (tmp_path / "a_second_module.py").write_text(SECOND, "utf-8")
    (tmp_path / "a_third_module.py").write_text(THIRD, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(inlining, "_OWN", "a_first_module")
    return "a_first_module", "a_second_module"


def test_a_script_gets_what_it_names_and_whatever_that_names(modules: tuple[str, str]) -> None:
    found = inlined("print(outer([1, 2]))", modules, ())
    assert found.imports == ("from math import pi",)
    assert (
        found.text
        == '''LIMIT = pi
"""Why it is so."""


def outer(values, *, limit=LIMIT):
    """Return what is near."""
    found = [value for value in values if inner(value) < limit]
    return found


def inner(value):
    """Return it as it is."""
    same = value
    return same'''
    )


def test_a_script_gets_what_one_module_has_of_another(modules: tuple[str, str]) -> None:
    found = inlined("print(twice(1))", modules, ())
    assert [line for line in found.text.splitlines() if line.startswith("def")] == [
        "def inner(value):",
        "def twice(value):",
    ]
    assert found.imports == ()


def test_all_imports_of_a_package_are_kept_for_its_name(modules: tuple[str, str]) -> None:
    assert inlined("unused()", modules, ()).imports == ("import json", "import os", "import os.path")


def test_only_those_imports_are_taken_that_a_script_uses_and_lacks() -> None:
    offered = ("import base64, sys", "import numpy as np", "from onnx import TensorProto, helper")
    assert inlined("import sys\nprint(np, sys, helper)", (), offered).imports == (
        "import numpy as np",
        "from onnx import helper",
    )


def test_what_is_missing_or_meant_twice_is_an_error(modules: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="'inner' comes from a_first_module, whose text"):
        inlined("twice(1)", modules[1:], ())
    with pytest.raises(UsageError, match="the script defines 'outer'"):
        inlined("def outer():\n    return inner(1)\nouter()", modules, ())
    with pytest.raises(UsageError, match="there is no module"):
        inlined("outer()", ("no_such_module",), ())


def test_a_module_means_its_own_definition_where_others_have_one_of_that_name(modules: tuple[str, str]) -> None:
    found = inlined("once()", (*modules, "a_third_module"), ())
    assert found.text == "def inner():\n    return 2\n\n\ndef once():\n    return inner()"
    for script in ("once(inner(1))", "once(outer([]))"):
        with pytest.raises(UsageError, match="'inner' is defined in more than one module"):
            inlined(script, (*modules, "a_third_module"), ())


def test_fields_keep_their_annotations() -> None:
    assert "    one: int\n    other: int = 2\n" in bare(FIRST)
    assert "LIMIT = pi\n" in bare(FIRST)


def test_imports_are_grouped_and_merged() -> None:
    lines = [
        "from onnx import helper",
        "import sys",
        "from onnx import TensorProto",
        "import numpy as np",
        "from math import pi",
        "from miscompile.core.case import Case",
    ]
    assert import_blocks(lines) == (
        ["import sys", "from math import pi"],
        ["import numpy as np", "from onnx import TensorProto, helper"],
        ["from miscompile.core.case import Case"],
    )
