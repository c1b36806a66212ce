"""The form `splice{...}` says for good which pattern it means. TVM itself is not needed for that."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from miscompile.base.errors import SpecError, UsageError
from miscompile.base.specs import Spec, parse_spec
from miscompile.cli.main import program
from miscompile.core.case import Case, Program
from miscompile.core.finding import Signature
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.engine.checks import PRESETS
from miscompile.engine.plan import Plan
from miscompile.engine.single import settings_of
from miscompile.engine.wiring import make_oracle
from miscompile.findings.store import Store
from miscompile.oracles.kinds import OracleContext
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.targets.registry import settled_transform
from miscompile.targets.tvm.relax.transforms import ENDING, Splice, chosen, entry, names, splice_options
from miscompile.triage.attribution import to_stored

MODEL = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] a) => (float[2] y) { y = Exp(a) }')
CASE = Case(Program("onnx", MODEL.SerializeToString(), (), ()), (), {})


def write(folder: Path, name: str, **changes: Any) -> None:
    listed = dict.fromkeys(("wakes", "operators", "holes", "outputs"), ())
    found = {
        **listed, "digest": name, "granularity": "subgraph", "origin": "a test", "name": name,
        "script": f"script of {name}", "constants": [], "passes": ["FuseOps"], **changes,
    }  # fmt: skip
    folder.mkdir(exist_ok=True)
    (folder / f"{name}{ENDING}").write_text(json.dumps(found), "utf-8")
    entry.cache_clear()


def meant(transform: Spec) -> Mapping[str, Any]:
    options = splice_options(transform)
    assert options is not None
    (found,) = chosen(options)
    return found


@pytest.fixture
def library(tmp_path: Path) -> Path:
    for name in ("FuseOps-1", "FuseOps-3"):
        write(tmp_path / "library", name)
    return tmp_path / "library"


def test_a_relative_library_is_the_same_one_from_everywhere(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    form = settled_transform("tvm", parse_spec("splice{library=library}"))
    monkeypatch.chdir("/")
    assert form == Spec("splice", (("library", str(library)),)), "without a seed no pattern is drawn yet"
    assert names(str(library)) == ("FuseOps-1", "FuseOps-3")


def test_what_a_seed_draws_stays_when_the_library_grows(library: Path) -> None:
    raw = parse_spec(f"splice{{library={library}, seed=3, call=yes}}")
    form = settled_transform("tvm", raw)
    assert form.get("name") == "FuseOps-3"
    assert settled_transform("tvm", form) == form
    write(library, "FuseOps-2")
    assert meant(raw)["name"] != "FuseOps-3", "the seed alone means another one now"
    assert meant(form)["name"] == "FuseOps-3"
    write(library, "FuseOps-3", passes=["FuseOps", "FuseTIR"])
    assert meant(form)["passes"] == ["FuseOps", "FuseTIR"], "the passes that it triggers do not define what it computes"


@pytest.mark.parametrize(
    "changes", [{"script": "another"}, {"constants": [{"dtype": "int8", "shape": [], "data": ""}]}]
)
def test_another_pattern_of_the_same_name_is_refused(library: Path, changes: dict[str, Any]) -> None:
    form = settled_transform("tvm", parse_spec(f"splice{{library={library}, seed=0}}"))
    write(library, "FuseOps-1", **changes)
    with pytest.raises(SpecError, match=r"'FuseOps-1' in .* is not the one that was spliced"):
        settled_transform("tvm", form)
    with pytest.raises(SpecError, match="run the finding's script"):
        meant(form)


def test_a_path_that_no_spec_can_say(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = tmp_path / "a,b"
    odd.mkdir()
    library.rename(odd / "library")
    monkeypatch.chdir(odd)
    with pytest.raises(SpecError, match="no spec can say the path"):
        settled_transform("tvm", parse_spec("splice{library=library}"))


def test_drawn_builds_name_their_pattern(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    oracle = make_oracle(Plan("tvm", transforms=(parse_spec("splice{library=library}"),)), {})
    forms = {run.build.transform for number in range(60) for run in oracle.plan(CASE, random.Random(number))} - {None}
    assert forms
    for form in forms:
        assert form is not None
        options = dict(form.options)
        assert options["library"] == str(library)
        assert options["name"] == names(str(library))[int(options["seed"]) % 2]
        assert options["digest"]


def test_a_finding_of_a_pattern_that_has_changed_is_no_longer_replayed(library: Path, tmp_path: Path) -> None:
    form = settled_transform("tvm", parse_spec(f"splice{{library={library}, seed=0}}"))
    runs = [Run(CASE, "tvm", Build(level, transform=form)) for level in ("off", "full")]
    evidence = Evidence("wrong", "", "", runs[1], runs[0])
    stored = to_stored(evidence, Signature("tvm", "wrong", "", (), ""), CASE, {}, OracleContext(("tvm",)))
    with Store.open(tmp_path / "out") as store:
        assert settings_of(store, stored).targets == ("tvm",)
        write(library, "FuseOps-1", script="another")
        with pytest.raises(UsageError, match="is not the one that was spliced"):
            settings_of(store, stored)
        (library / f"FuseOps-1{ENDING}").unlink()
        entry.cache_clear()
        with pytest.raises(UsageError, match="has no pattern 'FuseOps-1'"):
            settings_of(store, stored)


def test_a_library_may_be_named_by_its_harvest(library: Path) -> None:
    form = parse_spec(f"splice{{library={library}}}")
    assert settled_transform("tvm", parse_spec(f"splice{{library={library.parent}}}")) == settled_transform("tvm", form)


def test_several_patterns_are_all_named(library: Path) -> None:
    form = settled_transform("tvm", parse_spec(f"splice{{library={library}, seed=1, count=4}}"))
    options = splice_options(form)
    assert options is not None
    assert len(options.name) == len(options.digest) == 4
    assert options.name[0] == "FuseOps-3"
    assert [one["name"] for one in chosen(options)] == list(options.name)
    assert settled_transform("tvm", form) == form
    for wrong in ("count=0", "count=9", "name=FuseOps-1+FuseOps-3, digest=12"):
        with pytest.raises(SpecError):
            settled_transform("tvm", parse_spec(f"splice{{library={library}, {wrong}}}"))


def test_a_folder_of_patterns_adds_the_transforms_that_put_them_into_programs(library: Path) -> None:
    plan = Plan("tvm", producers=PRESETS["oatest"].producers, patterns=str(library))
    assert [splice_options(form) for form in plan.chosen_transforms] == [
        Splice(str(library)), Splice(str(library), call=True), Splice(str(library), count=3)
    ]  # fmt: skip
    ((name, options),) = plan.producer_specs()
    assert name == "oatest"
    assert isinstance(options, OatestOptions)
    assert not options.patterns, "that is for files"
    oracle = make_oracle(plan, {})
    drawn = [oracle.plan(CASE, random.Random(number)) for number in range(80)]
    spliced = [runs for runs in drawn if runs[0].build.transform]
    assert len(spliced) > 8
    for runs in spliced:
        assert len({run.build.transform for run in runs}) == 1, "such a program is held against itself"
    assert {len((splice_options(runs[0].build.transform) or Splice("x")).name) for runs in spliced} == {1, 3}


def test_only_tvm_takes_a_folder_of_patterns(library: Path, tmp_path: Path) -> None:
    for plan in (Plan("onnxruntime", patterns=str(library)), Plan("tvm", ("onnxruntime",), patterns=str(library))):
        with pytest.raises(UsageError, match="is a folder, as tvm alone takes it"):
            _ = plan.chosen_transforms
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no patterns"):
        _ = Plan("tvm", patterns=str(tmp_path / "empty")).chosen_transforms


def test_the_command_line_takes_a_folder(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(["fuzz", "onnxruntime", "--preset", "oatest", "--patterns", str(library)])
    assert caught.value.code == 2
    assert "as tvm alone takes it" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"{}", b'{"name": "Fuse', b"\xff\xfe", b"[]"])
def test_a_damaged_pattern_is_told_before_a_campaign_begins(library: Path, content: bytes) -> None:
    (library / f"FuseOps-9{ENDING}").write_bytes(content)
    with pytest.raises(SpecError, match=r"no pattern 'FuseOps-9'.*remove that file"):
        settled_transform("tvm", parse_spec(f"splice{{library={library}}}"))
