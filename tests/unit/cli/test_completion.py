"""Completion in a shell: what click's protocol answers, how quickly, and once in a real bash."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from miscompile.cli.completion import SHELLS, light_command, target_names
from miscompile.cli.main import VERBS, program
from miscompile.engine.checks import CHECKS, PRESETS
from miscompile.findings.store import Store
from miscompile.targets import registry

SECONDS = 0.3
"""How long a person waits for a Tab."""


def completed(*words: str) -> list[str]:
    """Return the answers for the last one of the words."""
    env = {
        "_MISCOMPILE_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("miscompile", *words)),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner().invoke(program, [], env=env, prog_name="miscompile")
    assert result.exit_code == 0, result.output
    return [line.partition(",")[2] for line in result.stdout.splitlines() if line]


def test_verbs() -> None:
    assert completed("") == list(VERBS)
    assert completed("re") == [verb for verb in VERBS if verb.startswith("re")]
    assert completed("help", "mig") == ["migrate"]
    assert set(completed("bugs", "")) >= {"list", "close", "link"}


@pytest.mark.parametrize("verb", VERBS)
def test_the_options_of_a_verb(verb: str) -> None:
    command = program.get_command(click.Context(program), verb)
    assert command is not None
    options = [name for param in command.params for name in param.opts + param.secondary_opts if name[:2] == "--"]
    assert set(completed(verb, "--")) >= set(options)
    assert "--help-all" in completed(verb, "--")


def test_targets() -> None:
    assert set(completed("fuzz", "open")) == {"openvino"}
    assert set(completed("check", "m.onnx", "--target", "onnxruntime")) == {"onnxruntime", "onnxruntime_openvino"}
    assert set(target_names()) == set(registry.target_names())


def test_checks_with_commas() -> None:
    assert set(completed("fuzz", "toy", "--check", "")) == {*CHECKS, "all"}
    assert completed("fuzz", "toy", "--check", "levels,ex") == ["levels,exact"]
    assert "levels,levels" not in completed("fuzz", "toy", "--check", "levels,")


def test_presets_and_other_choices() -> None:
    assert completed("fuzz", "--preset", "") == sorted(PRESETS)
    assert completed("bugs", "list", "--state", "rep") == ["reported"]
    assert completed("completion", "f") == ["fish"]


@pytest.mark.parametrize("verb", ["findings", "repro", "replay", "reduce", "bisect", "ready"])
def test_identifiers_of_findings_in_the_store_that_is_named(verb: str, tmp_path: Path) -> None:
    with Store.open(tmp_path):
        for name in ("wrong-aa11", "wrong-bb22", "death-cc33", ".old-wrong-aa11"):
            (tmp_path / "findings" / name).mkdir(parents=True)
    assert completed(verb, str(tmp_path), "wr") == ["wrong-aa11", "wrong-bb22"]
    assert completed(verb, str(tmp_path / "nowhere"), "wr") == []


def test_nothing_is_said_where_any_text_fits() -> None:
    assert completed("fuzz", "toy", "--seed", "") == []
    assert completed("nonsense", "") == list(VERBS)


def test_flags_that_have_an_opposite() -> None:
    assert completed("check", "--no-s") == ["--no-slices"]
    light = light_command("fuzz", "")
    assert light.make_context("fuzz", ["toy", "--no-guidance"]).params["guidance"] is False


def ask(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "_MISCOMPILE_COMPLETE": "bash_complete", "COMP_CWORD": str(len(words))}
    code = "import sys; from miscompile.cli.main import program\ntry: program.main([])\nfinally:"
    code += " print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    run = [sys.executable, "-c", code]
    return subprocess.run(
        run, env={**env, "COMP_WORDS": " ".join(("miscompile", *words))}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [("",), ("fuzz", "--"), ("fuzz", "o"), ("repro", "/nowhere", "w")], ids=" ".join)
def test_an_answer_takes_less_cpu_than_a_person_waits(words: tuple[str, ...]) -> None:
    """CPU time, because other processes of a busy machine delay the wall clock; the least of three counts."""
    taken = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        result = ask(*words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    assert result.returncode == 0, result.stderr
    assert min(taken) < SECONDS
    assert not {"numpy", "onnx", "rich", "jinja2", "onnxruntime"} & set(json.loads(result.stderr.replace("'", '"')))


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed(shell: str) -> None:
    result = CliRunner().invoke(program, ["completion", shell], prog_name="miscompile")
    assert result.exit_code == 0, result.output
    assert f"_MISCOMPILE_COMPLETE={shell}_complete" in result.stdout


def test_another_shell_is_refused() -> None:
    assert CliRunner().invoke(program, ["completion", "tcsh"]).exit_code == 2


@pytest.mark.process
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    command = tmp_path / "miscompile"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m miscompile "$@"\n')
    command.chmod(0o755)
    script = """
        eval "$(miscompile completion bash)"
        complete -p miscompile
        COMP_WORDS=(miscompile fuzz --pre); COMP_CWORD=2
        _miscompile_completion miscompile --pre fuzz
        echo "${COMPREPLY[@]}"
    """
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = ["bash", "--norc", "-c", script]
    done = subprocess.run(run, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.endswith("-F _miscompile_completion miscompile")
    assert second == "--preset"
