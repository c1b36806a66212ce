"""Faults that end or harm the process. A pass calls one only if it is switched on, on the pattern that it names."""

import ctypes
import os
import time
from contextlib import suppress

import numpy as np

from miscompile.targets.toy.ir import Bugs, Code, ToyCall


def read_address_zero() -> None:
    """Die of a segmentation fault."""
    ctypes.string_at(0)


def never_return() -> None:
    """Loop forever."""
    while True:
        time.sleep(0.01)


def collect_memory() -> None:
    """Allocate and keep blocks of doubled size until the system refuses one. Raises MemoryError.
    It touches few pages, so that a machine without memory limits is not harmed.
    """
    held = []
    for power in range(24, 64):
        held.append(np.empty(1 << power, np.uint8))
        held[-1][: 1 << 20] = 1


def print_megabytes() -> None:
    """Write four megabytes that are not valid UTF-8 to standard output, and as many to standard error.

    When a stream accepts no more bytes, the rest is discarded without an error, as a C library does when it prints.
    """
    block = bytes(range(256)) * 256
    for descriptor in (1, 2):
        with suppress(OSError):
            for _ in range(64):
                os.write(descriptor, block)


def tile_of_high_rank(code: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Part of NoOpElimination: dies of a segmentation fault on a Tile whose operand has rank 3 or more."""
    if "segfault_tile" in bugs and call.op == "Tile" and (code.rank(call.inputs[0]) or 0) >= 3:
        read_address_zero()
    return False


def reflecting_pad(_: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Part of PadConvFusion: aborts on a Pad in reflect mode."""
    if "abort_reflect_pad" in bugs and call.op == "Pad" and call.get("mode") == "reflect":
        os.abort()
    return False


def concat_with_itself(_: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Part of SplitConcatElimination: never ends on a Concat that names a value twice."""
    if "hang_concat_same" in bugs and call.op == "Concat" and len(set(call.inputs)) < len(call.inputs):
        never_return()
    return False


def expand_without_bound(_: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Part of ExpandElimination: allocates memory without bound on any Expand."""
    if "memory_expand" in bugs and call.op == "Expand":
        collect_memory()
    return False


def chatty_arg_max(_: Code, call: ToyCall, bugs: Bugs) -> bool:
    """Part of ArgNegFusion: floods both streams on any ArgMax."""
    if "garbage_arg_max" in bugs and call.op == "ArgMax":
        print_megabytes()
    return False
