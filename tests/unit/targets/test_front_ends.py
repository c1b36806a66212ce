"""Front ends by name."""

import pytest

from miscompile.base.errors import SpecError, UsageError
from miscompile.targets.front_ends import FrontEnd, all_front_ends, chosen, compilers, reference_of
from miscompile.targets.registry import about, parse_target


def test_compilers_with_their_own_reader_are_front_ends_of_onnx() -> None:
    onnx = {front.target for front in all_front_ends() if front.library == "onnx"}
    assert onnx == {"onnxruntime", "onnxruntime_openvino", "openvino", "tvm", "iree", "tinygrad", "tract", "mnn"}
    assert "toy" not in compilers()


def test_a_name_names_all_front_ends_and_a_library_some() -> None:
    assert {front.library for front in chosen(["openvino"])} >= {"onnx", "torch"}
    assert [front.name for front in chosen(["iree"], ["onnx"])] == ["onnx-iree"]
    with pytest.raises(UsageError, match="no front end for keras"):
        chosen(["iree"], ["keras"])
    with pytest.raises(SpecError, match="no target"):
        chosen(["nothing"])


def test_a_release_is_a_front_end_of_its_own() -> None:
    (front,) = chosen(["openvino==2023.1.0"], ["onnx"])
    assert (front.target, front.name) == ("openvino==2023.1.0", "onnx-openvino-2023.1.0")


@pytest.mark.parametrize("front", all_front_ends(), ids=lambda front: front.name)
def test_every_front_end_takes_programs_of_its_library(front: FrontEnd) -> None:
    spec = parse_target(front.target)
    assert spec.about.kinds == (front.library,)
    assert about(reference_of(front.library)).kinds == (front.library,)
    assert chosen([front.target], [front.library]) == (front,)


def test_names_are_distinct() -> None:
    names = [front.name for front in all_front_ends()]
    assert len(set(names)) == len(names)
    with pytest.raises(SpecError, match="no front end 'nothing'"):
        parse_target("openvino{via=nothing}")
