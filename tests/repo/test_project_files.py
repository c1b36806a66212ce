"""The files around the code agree with it: workflows, templates, citation, lock file."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from miscompile import __version__
from miscompile.targets.registry import target_names

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
FILES = sorted([*GITHUB.rglob("*.yml"), ROOT / "CITATION.cff"])
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")


def load(path: Path) -> dict[str, Any]:
    loaded = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_is_yaml(path: Path) -> None:
    assert load(path)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_and_rights_are_few(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] == {"contents": "read"}
    for step in steps(workflow):
        assert re.fullmatch(r"[\w-]+/[\w-]+@(v\d+|release/v\d+)", step.get("uses", "a/b@v1"))
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())


def test_ci_runs_every_python_that_the_package_names() -> None:
    job = load(GITHUB / "workflows" / "ci.yml")["jobs"]["checks"]
    named = [text.rpartition(" ")[2] for text in project()["classifiers"] if re.search(r"Python :: 3\.\d+$", text)]
    assert job["strategy"]["matrix"]["python"] == named
    assert {"run": ".ci/run"} in job["steps"]


def test_the_nightly_run_knows_its_compilers() -> None:
    entries = load(GITHUB / "workflows" / "nightly.yml")["jobs"]["compiler"]["strategy"]["matrix"]["include"]
    extras = project()["optional-dependencies"]
    for entry in entries:
        assert entry["target"] in target_names()
        assert (ROOT / "tests" / "targets" / entry["target"]).is_dir()
        assert set(Requirement("miscompile" + entry["requires"][1:]).extras) <= set(extras)
    installed = {name for entry in entries for name in Requirement("x" + entry["requires"][1:]).extras} - {"dev"}
    assert installed == {entry["target"] for entry in entries} - {"onnxruntime"}, "each gets the extra of its name"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_an_issue_form_asks_for_something(path: Path) -> None:
    form = load(path)
    assert form["name"]
    assert form["description"]
    questions = [part for part in form["body"] if part["type"] != "markdown"]
    assert any(part.get("validations", {}).get("required") for part in questions)
    assert len({part["id"] for part in questions}) == len(questions)


def test_the_citation_names_version_licence_and_source() -> None:
    citation = load(ROOT / "CITATION.cff")
    about = project()
    assert citation["version"] == __version__
    assert citation["license"] == about["license"]
    assert citation["repository-code"] == about["urls"]["Source"]


def test_every_cited_paper_has_a_section() -> None:
    page = " ".join((ROOT / "PAPERS.md").read_text("utf-8").split())
    for paper in load(ROOT / "CITATION.cff")["references"]:
        assert paper["title"] in page
        assert all(f"{one['given-names']} {one['family-names']}" in page for one in paper["authors"])
        assert paper.get("url", "") in page


def test_no_module_is_exempt_from_types() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert settings["strict"]
    assert {"src", "tests"} <= set(settings["files"])
    assert not [part["module"] for part in (settings, *settings["overrides"]) if part.get("ignore_errors")]


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements-dev.lock").read_text("utf-8").splitlines()
    pins = (re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?==(\S+)", line) for line in lines if line[:1].isalnum())
    return {canonicalize_name(pin[1]): pin[2] for pin in pins if pin}


def test_the_lock_file_has_every_requirement_of_development() -> None:
    text = (ROOT / "requirements-dev.lock").read_text("utf-8")
    assert "pip-compile" in text.splitlines()[4], "the head names the command"
    pins = locked()
    assert len(pins) == sum(line[:1].isalnum() for line in text.splitlines()), "exact versions only"
    about = project()
    for line in [*about["dependencies"], *about["optional-dependencies"]["dev"]]:
        wanted = Requirement(line)
        assert pins[canonicalize_name(wanted.name)] in wanted.specifier, f"{line}: make the lock file anew"


def test_the_lock_file_has_no_compiler_but_the_default() -> None:
    others = {"openvino", "apache-tvm", "jax", "jaxlib", "torch", "iree-base-compiler", "tinygrad", "keras"}
    assert "onnxruntime" in locked()
    assert others.isdisjoint(locked())
