"""The options of a compiler without which a script shows no bug are found by leaving them out."""

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from miscompile.targets.about import ScriptLines
from miscompile.targets.registry import about, load_attribute, target_names
from miscompile.triage.confirm import needed_settings

SCRIPT = """\
def build():
    if old():
        options.set("wide", 1)
    options.set("exact", 1)
"""
SETTINGS = {
    "wide": 'options.set("wide", 1)',
    "exact": 'options.set("exact", 1)',
    "absent": 'options.set("absent", 1)',
}


def needing(*statements: str) -> Callable[[str], bool]:
    """Return a bug that shows while the script contains all of the statements."""

    def shows(script: str) -> bool:
        ast.parse(script)
        return all(one in script for one in statements)

    return shows


@pytest.mark.parametrize("names", [(), ("wide",), ("exact",), ("wide", "exact")])
def test_the_needed_ones_are_named(names: tuple[str, ...]) -> None:
    assert needed_settings(SCRIPT, SETTINGS, needing(*(SETTINGS[name] for name in names))) == names


def test_one_of_two_is_enough() -> None:
    """Neither is needed alone, so both are named."""
    assert needed_settings(SCRIPT, SETTINGS, lambda script: "options" in script) == ("wide", "exact")


def test_a_script_without_settings_is_not_run() -> None:
    assert needed_settings("pass\n", SETTINGS, needing("never asked")) == ()


@pytest.mark.parametrize("target", [name for name in target_names() if about(name).script])
def test_statements_of_targets_stand_in_their_runners(target: str) -> None:
    lines: ScriptLines = load_attribute(about(target).script)
    specs = [importlib.util.find_spec(module) for module in lines.sources]
    texts = [Path(spec.origin).read_text("utf-8") for spec in specs if spec and spec.origin]
    assert set(lines.settings.values()) <= {line.strip() for text in texts for line in text.splitlines()}
