"""A misspelt operator is told; it must not look like one without bugs."""

from pathlib import Path

import pytest

from miscompile.base.errors import UsageError
from miscompile.harvest.libraries.sources import check_operators, of_operators
from miscompile.instances.archive import Archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.migration.exporting import Choice, export

ADD = Instance("torch", "torch.add", "function")
CONV = Instance("torch", "torch.nn.Conv2d", "module")


@pytest.mark.parametrize(
    ("names", "found"),
    [((), [ADD, CONV]), (("add",), [ADD]), (("torch.nn.Conv2d", "add"), [ADD, CONV]), (("torch.Conv2d",), [])],
)
def test_operators_are_named_by_path_or_its_last_part(names: tuple[str, ...], found: list[Instance]) -> None:
    assert list(of_operators([ADD, CONV], names)) == found


def test_every_name_must_be_somebodys() -> None:
    check_operators(["add", "Conv2d"], [ADD, CONV], ["torch"])
    with pytest.raises(UsageError, match="no instance of torch or onnx is of Nope, Nada"):
        check_operators(["add", "Nope", "Nada"], [ADD, CONV], ["torch", "onnx"])


def test_a_suite_of_an_unknown_operator_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    instances = tmp_path / "mine.jsonl.gz"
    write_archive(Archive("onnx", (Instance("onnx", "Relu", "node", version=17),)), instances)
    with pytest.raises(UsageError, match="no instance of onnx is of Nope"):
        export(Choice(operators=("Nope",), instances=(instances,)), tmp_path / "suite", lambda text: None)
    assert not (tmp_path / "suite").exists()
