"""The first bad access is read from what the checkers print: writes before reads, and nothing of the loader's."""

import pytest

from miscompile.core.case import Case, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Crashed, Observations, Outcome, Values
from miscompile.findings.folder import Stored
from miscompile.reports.issue import culprit_text
from miscompile.triage.first_access import (
    GLIBC,
    MEMCHECK,
    BadAccess,
    glibc_access,
    memcheck_access,
    wanted,
    without_arguments,
)

LOADER = """\
==12== Invalid read of size 8
==12==    at 0x4023C6C: strncmp (strcmp-sse2.S:160)
==12==    by 0x4004BEE: is_dst (dl-load.c:216)
==12==    by 0x40059BE: _dl_dst_count (dl-load.c:253)
==12==  Address 0x5c2a0b8 is 24 bytes inside a block of size 30 alloc'd
==12==    at 0x48407B4: malloc (vg_replace_malloc.c:381)
==12==
"""

READ = """\
==12== Invalid read of size 4
==12==    at 0x111559E5: gather(float const*, std::function<void (int)>) (in /site-packages/libkernels.so)
==12==  Address 0x0 is not stack'd, malloc'd or (recently) free'd
==12==
"""

WRITE = """\
==12== Invalid write of size 8
==12==    at 0x111559E5: _AVX_ScaleAndAddBias (in /site-packages/libkernels.so)
==12==    by 0x1109BF59: std::_Function_handler<void (int), CPUScale::run()>::call() (in /lib/libkernels.so)
==12==    by 0x1109C1FB: CPUScale::onExecute(std::vector<Tensor*> const&) (in /lib/libkernels.so)
==12==    by 0x49B6525: method_vectorcall_VARARGS (in /usr/lib/libpython3.11.so.1.0)
==12==  Address 0x1da0 is 0 bytes after a block of size 80 alloc'd
==12==    at 0x48407B4: malloc (vg_replace_malloc.c:381)
==12==
"""

TRACED = """\
free(): invalid pointer
trace of the death: signal 6
/lib/x86_64-linux-gnu/libffi.so.8(ffi_call+0xcd)[0x7f7e889f7b0d]
/usr/lib/libpython3.11.so.1.0(PyObject_Vectorcall+0x33)[0x7f7e88f58ba3]
/lib/x86_64-linux-gnu/libc.so.6(abort+0xd3)[0x7f7e88c44472]
/lib/x86_64-linux-gnu/libc_malloc_debug.so.0(free+0xe1)[0x7f7e89571491]
/site-packages/libkernels.so(release+0x21)[0x7f7e7e2e5ab1]
/site-packages/libkernels.so(+0x1ef36c)[0x7f7e7e3ef36c]
/work/bin/python(_start+0x21)[0x557c35cbb081]
"""


def death_with(access: BadAccess) -> Stored:
    held = Property("optimisation", "toy", Signature("toy", "death", "run", (), "signal 6: heap corruption"))
    case = Case(Program("other", b"", (), ()), ())
    return Stored(Finding("death-1", held, case, "it dies", {"first_access": access.as_json()}), "confirmed", None, {})


def test_a_write_counts_before_the_reads_and_accesses_of_the_loader_never_count() -> None:
    found = memcheck_access(LOADER + READ + WRITE, corrupted=False)
    frames = ("_AVX_ScaleAndAddBias (libkernels.so)", "CPUScale::onExecute (libkernels.so)")
    assert found == BadAccess(MEMCHECK, "writes 8 bytes", "0 bytes after a block of size 80", frames)
    assert memcheck_access(LOADER, corrupted=False) is None


def test_a_read_counts_only_where_the_heap_is_not_corrupted() -> None:
    found = memcheck_access(READ, corrupted=False)
    assert found is not None
    assert (found.what, found.frames) == ("reads 4 bytes", ("gather (libkernels.so)",))
    assert memcheck_access(READ, corrupted=True) is None


def test_the_frames_of_the_checking_allocator_are_those_of_the_compiler() -> None:
    found = glibc_access(TRACED)
    assert found is not None
    assert (found.checker, found.what) == (GLIBC, "free(): invalid pointer")
    assert found.frames == ("release (libkernels.so)", "+0x1ef36c (libkernels.so)")
    assert glibc_access("Killed\n") is None


@pytest.mark.parametrize(
    ("outcome", "asks"),
    [
        (Crashed("run", 6, Observations(stderr="double free or corruption (out)")), True),
        (Crashed("run", 11, Observations(stderr="Fatal Python error: Segmentation fault")), True),
        (Crashed("run", 11, Observations(stderr="guard: reads memory that is near no guarded array")), True),
        (
            Crashed("run", 11, Observations(stderr="guard: reads behind the end of input 'x' at byte 8")),
            False,
        ),
        (Crashed("run", 6, Observations(stderr="Check failed: rank == 2")), False),
        (Values(()), False),
        (None, False),
    ],
)
def test_it_is_asked_about_deaths_that_name_no_access(outcome: Outcome | None, asks: bool) -> None:
    assert wanted(outcome) == asks


def test_a_name_loses_its_argument_types_alone() -> None:
    assert without_arguments("std::_Handler<void (int), A::f()::{lambda(int)#1}>::call(int&&)").endswith(">::call")
    assert without_arguments("(anonymous namespace)::kernel(float*)") == "(anonymous namespace)::kernel"
    assert without_arguments("main") == "main"


def test_the_report_names_it() -> None:
    found = memcheck_access(WRITE, corrupted=True)
    assert found is not None
    text = culprit_text(death_with(found))
    assert "First bad access: writes 8 bytes (0 bytes after a block of size 80), in `_AVX_ScaleAndAddBias" in text
    assert text.endswith("by valgrind memcheck.")
