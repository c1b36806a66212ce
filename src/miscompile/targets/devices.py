"""Devices other than the CPU, whose availability is checked before a compiler builds for them.

This code runs in workers. A driver that was started before a fork does not work after it. Neither the constructor of
an adapter nor any other code in the zygote may therefore start one: a `Gate` is constructed there, and checks only
at the first build for a device. This module imports no compiler; each adapter checks the requirements of its
compiler.
"""

import contextlib
import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from miscompile.base.child import lift_memory_limit
from miscompile.base.errors import UsageError

DeviceQuery = Callable[[], Iterable[str]]
"""Returns one line for each missing requirement of a device; empty text or lines when the device is available."""

Load = Callable[[str], Any]

CUDA_DRIVER = "libcuda.so.1"
PRECISE: Mapping[str, str] = {"NVIDIA_TF32_OVERRIDE": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Variables that NVIDIA's libraries read at first use. They disable products of float32 with 10 bits of mantissa
(which differ by design), and fix the order of sums."""

_PROC = Path("/proc")
_STARTED = ("/dev/nvidia", "/dev/dri/render", "/dev/dxg")
_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR of the driver's interface."""

_REASONS = {
    100: "it finds no device",
    101: "it finds no device of that number",
    803: "its parts are of different versions",
    804: "it does not support this device with this version of CUDA",
}
"""The meanings of cuInit's return codes that occur with an installed driver."""


class NoDeviceError(UsageError):
    """A build is for a device that this process cannot use; the message is one line that names all missing
    requirements."""


class IdleDeviceError(RuntimeError):
    """A program was built for a device, but no part of it runs there, so its results would prove nothing about the
    device."""


class Gate:
    """Checks the availability of a device before the first build for it. An adapter constructs one before the fork.

    `name` is the name of the target. `asks` contains for each device except the CPU the function that returns its
    missing requirements. `maker` is the process from which workers are forked, by default the current one.
    """

    def __init__(self, name: str, asks: Mapping[str, DeviceQuery], maker: int | None = None) -> None:
        self._name, self._asks = name, dict(asks)
        self._maker = os.getpid() if maker is None else maker
        self._open = {"cpu"}

    def pass_for(self, device: str) -> None:
        """Return if this process can build for `device`; otherwise raise NoDeviceError.

        The first call removes the limit on address space, because drivers reserve as much address space as the
        memory of machine and device together. For `cuda` it also sets the variables of `PRECISE`.
        """
        if device in self._open:
            return
        if device not in self._asks:
            raise NoDeviceError(f"{self._name} has no build for the device '{device}'")
        if os.getpid() != self._maker and started(self._maker):
            raise NoDeviceError(
                f"{self._name} cannot build for {device}: a driver was started before this worker was forked, and does "
                "not work after that"
            )
        lift_memory_limit()
        if device == "cuda":
            os.environ.update(PRECISE)
        lacking = [" ".join(line.split()) for line in self._asks[device]() if line]
        if lacking:
            raise NoDeviceError(f"{self._name} cannot build for {device} here: {'; '.join(lacking)}")
        self._open.add(device)


def started(process: int, proc: Path = _PROC) -> bool:
    """Tell whether `process` has opened a graphics device, which a started driver does."""
    try:
        links = list((proc / str(process) / "fd").iterdir())
    except OSError:  # it has ended, or belongs to another user
        return False
    for link in links:
        with contextlib.suppress(OSError):  # closed in the meantime
            if os.readlink(link).startswith(_STARTED):
                return True
    return False


def lacks_cuda(load: Load = ctypes.CDLL) -> str:
    """Start NVIDIA's driver; return its missing requirements, or an empty text when it has a device."""
    try:
        driver = load(CUDA_DRIVER)
    except OSError:
        return f"this machine has no NVIDIA driver ({CUDA_DRIVER} cannot be loaded)"
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    hint = f" (CUDA_VISIBLE_DEVICES is '{hidden}')" if hidden is not None else ""
    code = driver.cuInit(0)
    if code:
        return f"NVIDIA's driver does not start: {_REASONS.get(code, f'cuInit returns {code}')}{hint}"
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    return "" if count.value else f"NVIDIA's driver finds no device{hint}"


def cuda_capability(load: Load = ctypes.CDLL) -> tuple[int, int]:
    """Return the compute capability of the first device, such as (9, 0); only after `lacks_cuda` has found one."""
    driver = load(CUDA_DRIVER)
    device, found = ctypes.c_int(), []
    driver.cuDeviceGet(ctypes.byref(device), 0)
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        found.append(value.value)
    return found[0], found[1]


def preload(*patterns: str, folders: Iterable[str] | None = None) -> tuple[str, ...]:
    """Load NVIDIA's libraries from pip packages, which the system's loader does not search; return their names.

    `patterns` are names such as `libcudart.so.13`; `folders` contain the packages (None: those of `sys.path`).
    Loading a library starts no driver, so this may run before the fork.
    """
    loaded = []
    for folder in sys.path if folders is None else folders:
        for pattern in patterns:
            for path in sorted(Path(folder, "nvidia").glob(f"*/lib/{pattern}")):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
                    loaded.append(path.name)
    return tuple(loaded)
