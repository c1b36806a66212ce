"""Devices other than the CPU, without one: what a worker finds out, in which order, and the words it finds."""

import ctypes
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import pytest
from jinja2 import Environment, StrictUndefined

from miscompile.base.errors import UsageError
from miscompile.core.run import Build
from miscompile.targets import devices
from miscompile.targets.devices import PRECISE, Gate, NoDeviceError, cuda_capability, lacks_cuda, preload, started
from miscompile.targets.iree.flags import BASE, cuda_flags, flags
from miscompile.targets.known import known
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.registry import about, target_names

WITH_DEVICES = [name for name in target_names() if about(name).devices != ("cpu",)]


class Driver:
    """Stands in for NVIDIA's driver; knows what has been asked of it."""

    def __init__(self, status: int = 0, count: int = 1, capability: tuple[int, int] = (8, 6)) -> None:
        self.status, self.count, self.capability = status, count, capability
        self.calls: list[str] = []

    def cuInit(self, flags: int) -> int:  # noqa: N802 - the driver's name
        self.calls.append(f"cuInit({flags})")
        return self.status

    def cuDeviceGetCount(self, found: Any) -> int:  # noqa: N802
        found._obj.value = self.count
        return 0

    def cuDeviceGet(self, found: Any, number: int) -> int:  # noqa: N802
        found._obj.value = 40 + number
        return 0

    def cuDeviceGetAttribute(self, found: Any, attribute: int, device: ctypes.c_int) -> int:  # noqa: N802
        assert device.value == 40
        found._obj.value = self.capability[{75: 0, 76: 1}[attribute]]
        return 0

    def load(self, name: str) -> "Driver":
        assert name == "libcuda.so.1"
        return self


MemoryLimits: TypeAlias = list[tuple[int, tuple[int, int]]]
"""Calls of `setrlimit`: the resource, and its soft and hard limit."""


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> MemoryLimits:
    """Keep what `lift_memory_limit` would do to this process, and let the variables be as they were afterwards."""
    for name, value in PRECISE.items():
        monkeypatch.setenv(name, f"not {value}")
    seen: MemoryLimits = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1000, 5000))
    monkeypatch.setattr(resource, "setrlimit", lambda what, pair: seen.append((what, pair)))
    return seen


def counting(lines: list[str]) -> tuple[list[int], Callable[[], list[str]]]:
    asked: list[int] = []

    def ask() -> list[str]:
        asked.append(1)
        return list(lines)

    return asked, ask


def test_the_cpu_is_never_asked_for(limits: MemoryLimits) -> None:
    asked, ask = counting(["whatever"])
    Gate("x", {"cuda": ask}).pass_for("cpu")
    assert (asked, limits, os.environ["NVIDIA_TF32_OVERRIDE"]) == ([], [], "not 0")


def test_a_device_that_is_there_is_asked_for_once(limits: MemoryLimits) -> None:
    asked, ask = counting([""])
    gate = Gate("x", {"cuda": ask})
    gate.pass_for("cuda")
    gate.pass_for("cuda")
    assert asked == [1]
    assert limits == [(resource.RLIMIT_AS, (5000, 5000))]
    assert {name: os.environ[name] for name in PRECISE} == PRECISE


def test_all_that_is_missing_is_said_in_one_line(limits: MemoryLimits) -> None:
    del limits
    asked, ask = counting(["no  driver\nhere", "", "no build"])
    gate = Gate("thing", {"gpu": ask})
    for _ in range(2):
        with pytest.raises(NoDeviceError) as raised:
            gate.pass_for("gpu")
        assert str(raised.value) == "thing cannot build for gpu here: no driver here; no build"
    assert asked == [1, 1], "a device that was missing is asked for again"
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "not 0", "the variables are NVIDIA's"


def test_an_unknown_device_is_refused_before_anything_is_done(limits: MemoryLimits) -> None:
    with pytest.raises(NoDeviceError, match="thing has no build for the device 'abacus'"):
        Gate("thing", {"cuda": list}).pass_for("abacus")
    assert limits == []


def test_a_missing_device_is_the_users_to_mend() -> None:
    assert issubclass(NoDeviceError, UsageError)


def holder(proc: Path, process: int, *targets: str) -> None:
    fds = proc / str(process) / "fd"
    fds.mkdir(parents=True)
    for number, target in enumerate(targets):
        (fds / str(number)).symlink_to(target)


def test_a_started_driver_is_seen_by_what_its_process_holds_open(tmp_path: Path) -> None:
    holder(tmp_path, 1, "/dev/null", "pipe:[77]", "socket:[78]", "/dev/shm/x")
    holder(tmp_path, 2, "/dev/null", "/dev/nvidiactl")
    holder(tmp_path, 3, "/dev/nvidia0")
    holder(tmp_path, 4, "/dev/dri/renderD128")
    assert [started(process, tmp_path) for process in range(1, 6)] == [False, True, True, True, False]


def test_this_process_has_started_no_driver() -> None:
    assert not started(os.getpid())


def test_a_driver_started_before_the_fork_is_said(limits: MemoryLimits, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = counting([])
    monkeypatch.setattr(devices, "started", lambda process: process == 1)
    with pytest.raises(NoDeviceError, match="thing cannot build for cuda: a driver was started before this worker was"):
        Gate("thing", {"cuda": ask}, maker=1).pass_for("cuda")
    assert (asked, limits) == ([], [])
    Gate("thing", {"cuda": ask}, maker=2).pass_for("cuda")
    Gate("thing", {"cuda": ask}).pass_for("cuda")
    assert asked == [1, 1]


def missing(name: str) -> NoReturn:
    raise OSError(f"{name}: cannot open shared object file")


def test_what_the_driver_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert lacks_cuda(missing) == "this machine has no NVIDIA driver (libcuda.so.1 cannot be loaded)"
    driver = Driver()
    assert lacks_cuda(driver.load) == ""
    assert driver.calls == ["cuInit(0)"]
    assert lacks_cuda(Driver(count=0).load) == "NVIDIA's driver finds no device"
    assert lacks_cuda(Driver(100).load) == "NVIDIA's driver does not start: it finds no device"
    assert lacks_cuda(Driver(803).load) == "NVIDIA's driver does not start: its parts are of different versions"
    assert lacks_cuda(Driver(999).load) == "NVIDIA's driver does not start: cuInit returns 999"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert lacks_cuda(Driver(100).load).endswith("it finds no device (CUDA_VISIBLE_DEVICES is '-1')")
    assert lacks_cuda(Driver().load) == ""


def test_the_capability_is_read_from_the_first_device() -> None:
    assert cuda_capability(Driver(capability=(9, 0)).load) == (9, 0)


def test_libraries_are_found_in_packages_and_broken_ones_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    libm = next(line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm" in line)
    shutil.copy(libm, folder / "libcudart.so.13")
    (folder / "libcudart.so.9").write_text("no library")
    (folder / "libother.so.1").write_text("not asked for")
    assert preload("libcudart.so.*", folders=[str(tmp_path), str(tmp_path / "nothing")]) == ("libcudart.so.13",)
    assert preload("libcudart.so.*", folders=[]) == ()


def test_which_targets_have_which_devices() -> None:
    found = {name: about(name).devices for name in WITH_DEVICES}
    cuda = ("cpu", "cuda")
    assert found == {
        **dict.fromkeys(("inductor", "iree", "onnxruntime", "tinygrad", "tvm", "xla"), cuda),
        "openvino": ("cpu", "gpu"),
    }


@pytest.mark.parametrize("name", WITH_DEVICES)
def test_a_missing_device_is_no_bug_of_the_compiler(name: str) -> None:
    entry = known(name).rejection("NoDeviceError", f"{name} cannot build for cuda here: nothing")
    assert entry is not None
    assert entry.status == "unsupported"


def test_flags_of_iree_for_a_device() -> None:
    for level in ("off", "O1", "full"):
        plain, other = flags(level), flags(level, (), cuda_flags((8, 0)))
        assert other[:2] == ("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_80")
        assert not any("llvm-cpu" in flag or "target-cpu" in flag for flag in other)
        assert set(BASE[3:]) <= set(other), "numbers are as exact as on the CPU"
        assert "--iree-hal-target-backends=llvm-cpu" in plain
    assert "--iree-opt-data-tiling=true" in flags("full")
    assert "--iree-opt-data-tiling=true" not in flags("full", (), cuda_flags((8, 0)))


@pytest.mark.parametrize(
    ("capability", "architecture"),
    [((5, 2), "sm_60"), ((7, 2), "sm_70"), ((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_89"), ((12, 0), "sm_89")],
)
def test_iree_gets_the_newest_architecture_it_describes(capability: tuple[int, int], architecture: str) -> None:
    assert cuda_flags(capability)[1] == f"--iree-cuda-target={architecture}"


LEVELS = {"off": '"off"', "full": "3"}


def placed(faulty: Build, reference: Build | None) -> dict[str, Any]:
    """Return what the lines of a script know of the device."""
    shown = PLACEMENT + "{{ [placed, gpu, where, nothing, told] }}"
    text = (
        Environment(undefined=StrictUndefined, trim_blocks=True)
        .from_string(shown)
        .render(faulty=faulty, reference=reference, levels=LEVELS)
    )
    return dict(zip(("placed", "gpu", "where", "nothing", "told"), eval(text), strict=True))


def device_of(found: dict[str, Any], level: Any, off: Any) -> str:
    return str(eval(found["where"], {"level": level, "off": off}))


def test_scripts_about_the_cpu_know_of_no_device() -> None:
    for reference in (None, Build("off")):
        found = placed(Build("full"), reference)
        assert (found["placed"], found["nothing"]) == (False, "()")


def test_a_script_without_reference_is_for_the_device() -> None:
    found = placed(Build("full", device="cuda"), None)
    assert (found["placed"], found["gpu"], found["nothing"]) == (True, "cuda", "()")
    assert device_of(found, 3, []) == "cuda"


def test_levels_tell_the_device_where_they_differ() -> None:
    found = placed(Build("full", device="cuda"), Build("off"))
    assert [device_of(found, 3, []), device_of(found, "off", [])] == ["cuda", "cpu"]
    found = placed(Build("off"), Build("full", device="gpu"))
    assert (found["gpu"], device_of(found, "off", []), device_of(found, 3, ["x"])) == ("gpu", "cpu", "gpu")


def test_at_one_level_the_faulty_build_is_the_one_with_switches() -> None:
    found = placed(Build("off", device="cuda"), Build("off"))
    assert (found["told"], found["nothing"]) == (True, "None")
    assert [device_of(found, "off", None), device_of(found, "off", []), device_of(found, "off", ["a"])] == [
        "cpu",
        "cuda",
        "cuda",
    ]
