"""`miscompile rules`, and the options that say in which forms programs are presented."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from miscompile.base.specs import parse_spec
from miscompile.cli.main import program
from miscompile.engine.checks import PRESETS
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle
from miscompile.oracles.optimisation import Optimisation
from miscompile.transforms.catalogue import transform_of
from miscompile.transforms.rules.certify import certify
from miscompile.transforms.rules.library import chosen
from miscompile.transforms.rules.proofs.prove import prove


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        program.main(list(words))
    return int(ended.value.code or 0)


def test_rules_are_listed_with_certificates_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rules", "commutative", "--trials", "5", "--graphs", "40", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["totals"]["rules"] == len(said["rules"]) == said["totals"]["certified"] > 0
    names = {row["name"]: row for row in said["rules"]}
    assert names["Add-commutes"]["exactness"] == "bits"
    assert names["Add-commutes"]["certificate"]["accepted"]
    assert names["Add-commutes"]["unions"] > 0


def test_without_trials_nothing_is_certified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rules", "Add-commutes", "--trials", "0", "--graphs", "0") == 0
    assert "1 rule, 1 group, 0 certified, 0 applied" in capsys.readouterr().out


def test_the_counterexample_of_an_unsound_rule_stands_on_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = "on small numbers the sides differ; where x: float32[3, 2, 1, 2, 3], y: float32[3, 2, 2, 2, 3]"
    monkeypatch.setattr(
        "miscompile.engine.rulebook.certify",
        lambda rule, trials, seed: replace(certify(rule, 1, seed), reason=reason),
    )
    assert run("rules", "Add-commutes", "--graphs", "0") == 1
    assert f"unsound: Add-commutes: {reason}\n" in capsys.readouterr().out


def test_rules_are_proved_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("rules", "Transpose-nothing", "Max-absorbs-Min", "--trials", "0", "--graphs", "0")
    assert run(*words, "--prove", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    proofs = {row["name"]: row["proof"] for row in said["rules"]}
    assert {proof["status"] for proof in proofs.values()} == {"proved"}
    assert proofs["Transpose-nothing"]["methods"] == ["identical operations"]
    assert said["totals"]["proved"] == 2
    assert run(*words, "--prove") == 0
    assert "2 proved, 0 exact on a domain" in capsys.readouterr().out
    assert run(*words, "--markdown") == 0
    assert "| `Transpose-nothing` | proved | proved |" in capsys.readouterr().out
    assert run(*words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rules"][0]["proof"] is None


def test_a_refuted_rule_ends_in_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = replace(prove(chosen("Transpose-nothing")[0], 1), status="refuted", reason="the sides differ")
    monkeypatch.setattr("miscompile.engine.rulebook.prove", lambda rule: proof)
    assert run("rules", "Transpose-nothing", "--trials", "0", "--graphs", "0", "--prove") == 1
    assert "1 refuted" in capsys.readouterr().out


def test_an_unsound_rule_of_the_users_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("name = 'wrong'", "group = 'mine'", "left = 'Sub(x, y)'", "right = 'Sub(y, x)'", "exactness = 'bits'")
    (tmp_path / "mine.toml").write_text(
        "\n".join(["[[rule]]", *lines, "dtypes = 'number'", "source = 'mine'"]), "utf-8"
    )
    assert run("rules", "--file", str(tmp_path / "mine.toml")) == 2
    assert "wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rules", "nonsense"), "there is no rule or group 'nonsense'"),
        (("rules", "commutative", "--file", __file__), "leave the names out"),
        (("fuzz", "toy", "--transform", "nope"), "there is no transform 'nope'"),
        (("fuzz", "toy", "--form", "resist{classes=nope}"), "there is no resistance class 'nope'"),
        (("fuzz", "toy", "onnxruntime", "--form", "order"), "name one target"),
        (("fuzz", "tvm", "--form", "splice"), "splice needs library=FOLDER"),
        (("fuzz", "tvm", "--form", "splice{library=/nowhere}"), "/nowhere holds no patterns"),
        (("fuzz", "tvm", "--form", "splice{library=/nowhere, foo=3}"), "splice has no option 'foo'"),
        (("fuzz", "tvm", "--form", "relax{foo=3}"), "relax has no option 'foo'"),
        (("fuzz", "openvino", "--form", "reload{stage=later}"), "stage=later"),
        (("check", __file__, "--check", "dynamic"), "belongs to `miscompile fuzz`"),
    ],
)
def test_what_cannot_be_meant_is_said_in_a_line(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err


def test_transforms_that_are_asked_for_are_drawn_besides() -> None:
    asked = (parse_spec("order"), parse_spec("resist{classes=fusion}"))
    oracle = make_oracle(Plan("toy", transforms=asked), {})
    assert isinstance(oracle, Optimisation)
    assert oracle.families == (tuple((one,) for one in asked),)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_presets_can_be_planned(name: str) -> None:
    preset = PRESETS[name]
    plan = Plan("onnxruntime", producers=preset.producers, checks=preset.checks)
    assert [spec for spec, _ in plan.producer_specs()]
    oracle = make_oracle(plan, {})
    assert isinstance(oracle, Optimisation)
    for family in oracle.families:
        for together in family:
            assert all(map(transform_of, together))
