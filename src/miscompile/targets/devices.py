"""Devices other than the CPU: whether this process can have one, found out before a compiler is asked to build for it.

Everything here belongs in a worker. A driver that was started before a fork does not work after it, so neither the
constructor of an adapter nor anything else in the zygote may start one: a `Gate` is made there, and asks only when the
first build for a device comes. Nothing here imports a compiler; what a compiler lacks, its own adapter knows.
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
"""Says what a device lacks, a line for each thing that is missing; nothing at all, or empty lines, when it is there."""

Load = Callable[[str], Any]

CUDA_DRIVER = "libcuda.so.1"
PRECISE: Mapping[str, str] = {"NVIDIA_TF32_OVERRIDE": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Variables that NVIDIA's libraries read when they are first used: no product of float32 with 10 bits of mantissa (the
result would be a difference by design, not a bug), and the same sums in the same order each time."""

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
"""What cuInit returns and what that means, for the codes that occur where a driver is installed."""


class NoDeviceError(UsageError):
    """A build is for a device that this process cannot have; the message is one line that names all that is missing."""


class IdleDeviceError(RuntimeError):
    """A program was built for a device, but no part of it runs there, so that running it would say nothing."""


class Gate:
    """Lets builds for a device through, once it is known to be there. An adapter has one, made before the fork.

    `name` is the target's, `asks` holds for each device but the CPU the function that says what it lacks. `maker` is
    the process that workers are forked from, by default the one that makes this.
    """

    def __init__(self, name: str, asks: Mapping[str, DeviceQuery], maker: int | None = None) -> None:
        self._name, self._asks = name, dict(asks)
        self._maker = os.getpid() if maker is None else maker
        self._open = {"cpu"}

    def pass_for(self, device: str) -> None:
        """Return when this process can build for `device`; else raise NoDeviceError.

        The first time, the limit on address space is lifted, because drivers reserve as much of it as the machine and
        the device have memory together, and the variables of `PRECISE` are set for `cuda`.
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
    """Tell whether `process` holds a graphics device open, as it does once a driver has been started in it."""
    try:
        links = list((proc / str(process) / "fd").iterdir())
    except OSError:  # it has ended, or belongs to somebody else
        return False
    for link in links:
        with contextlib.suppress(OSError):  # closed in the meantime
            if os.readlink(link).startswith(_STARTED):
                return True
    return False


def lacks_cuda(load: Load = ctypes.CDLL) -> str:
    """Start NVIDIA's driver; say what is missing for it to have a device, an empty text when it has one."""
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
    """Load NVIDIA's libraries from pip packages, where the system's loader does not look; return their names.

    `patterns` are names such as `libcudart.so.13`; `folders` are where packages lie (None: as Python sees it). Loading
    a library starts no driver, so this may be done before the fork.
    """
    loaded = []
    for folder in sys.path if folders is None else folders:
        for pattern in patterns:
            for path in sorted(Path(folder, "nvidia").glob(f"*/lib/{pattern}")):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
                    loaded.append(path.name)
    return tuple(loaded)
