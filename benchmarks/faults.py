"""Injects faults into a running campaign on the toy compiler, and checks after each one that nothing is lost.

    python benchmarks/faults.py --faults 100
    python benchmarks/faults.py --faults 1000 --parallel 4 --json

After every fault these invariants are checked:

- kept: every finding that was announced is on disk and can be loaded, unless the fault damaged that very finding;
- once: no finding is announced twice, over all sessions of a campaign;
- counters: the number of tests in the store never falls;
- gone: where the campaign has ended, none of its processes lives;
- code: it ended with the exit code that the documentation promises, in one line and without a traceback;
- goes on: where the fault should not end the campaign, further tests follow; where it should, `--resume` works.

Two kinds need a C compiler: clock jumps and stalled writes go through a preloaded library of a few lines. They are
skipped, with the reason, where there is none.
"""

import argparse
import contextlib
import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from miscompile.base.errors import MiscompileError
from miscompile.findings import folder
from miscompile.findings.store import Store

COMMAND = (sys.executable, "-c", "from miscompile.cli.main import main; main()")
TARGET = "toy{bugs=sub_commutes+checked_gather+sub_self_dtype+rank0_key_error}"
OPTIONS = ("--opset", "21", "--time", "29m", "--limit-seconds", "2", "--limit-memory", "400M")
"""A campaign of half an hour or more would read onnx's own tests at each start."""

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile long *control; /* seconds to add to the wall clock; whether writes stall */
__attribute__((constructor)) static void begin(void) {
    int file = open(getenv("FAULTS_CONTROL"), O_RDONLY);
    control = mmap(0, 16, PROT_READ, MAP_SHARED, file, 0);
    close(file);
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int status = real(clock, now);
    if (clock == CLOCK_REALTIME && control != MAP_FAILED) now->tv_sec += control[0];
    return status;
}
int fsync(int file) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    while (control != MAP_FAILED && control[1]) usleep(10000);
    return real(file);
}
"""
"""Shifts the wall clock of all processes of a campaign, and holds their syncs, as a network folder does that stalls."""


class Skipped(Exception):  # noqa: N818 - control flow: the fault cannot be made here, or not now
    """The fault cannot be injected."""


@dataclass
class Control:
    """The shared memory that the preloaded library reads, None without a C compiler."""

    place: Path
    cache: Path
    library: Path | None = None

    def build(self) -> None:
        """Compile the library."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        (self.place / "control").write_bytes(bytes(16))
        if compiler is None:
            return
        source, library = self.place / "shim.c", self.place / "shim.so"
        source.write_text(SHIM)
        words = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        if subprocess.run(words, check=False, capture_output=True).returncode == 0:
            self.library = library

    def environment(self) -> dict[str, str]:
        """Return the variables of the campaign."""
        base = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "COLUMNS": "400"}
        preload = {} if self.library is None else {"LD_PRELOAD": str(self.library)}
        return base | preload | {"FAULTS_CONTROL": str(self.place / "control")}

    def set(self, shift: int, stalled: bool) -> None:
        """Shift the clock by `shift` seconds and stall the syncs, or let them go."""
        if self.library is None:
            raise Skipped("there is no C compiler for the library that shifts clocks and stalls writes")
        with (self.place / "control").open("r+b") as file, mmap.mmap(file.fileno(), 16) as shared:
            shared[:] = struct.pack("ll", shift, int(stalled))


@dataclass
class Campaign:
    """A campaign that is started again with `--resume` after each end. `announced` lists the findings in order."""

    out: Path
    control: Control
    seed: int
    announced: list[str] = field(default_factory=list)
    excused: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    process: "subprocess.Popen[str] | None" = None
    reader: threading.Thread | None = None
    tests: int = 0

    def start(self, seconds: float = 240) -> None:
        """Start or resume, and wait for tests."""
        words = ["--resume"] if self.out.exists() else ["--seed", str(self.seed)]
        self.said.clear()
        self.process = subprocess.Popen(
            [*COMMAND, "fuzz", TARGET, "--out", str(self.out), "--workers", str(1 + self.seed % 2), *OPTIONS, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=self.control.environment(),
        )
        self.reader = threading.Thread(target=self._read, args=(self.process,), daemon=True)
        self.reader.start()
        self.progress(seconds)

    def _read(self, process: "subprocess.Popen[str]") -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line.rstrip())
            if line.startswith("found "):
                self.announced.append(line.split()[1].rstrip(":"))

    def progress(self, seconds: float = 60) -> None:
        """Wait until more tests are counted. Raises AssertionError when none follow, or the campaign ends."""
        before, end = self.counted(), time.monotonic() + seconds
        while self.counted() <= before:
            assert self.process is not None
            assert self.process.poll() is None, f"goes on: it ended with {self.process.returncode}: {self.last()}"
            assert time.monotonic() < end, "goes on: no further tests"
            time.sleep(0.05)

    def counted(self) -> int:
        """Return the tests in the store, 0 where there is none yet."""
        try:
            with Store.open(self.out, create=False) as store:
                return store.counters().get("tests", 0)
        except MiscompileError:
            return 0

    def last(self) -> str:
        """Return the last line on standard error."""
        return self.said[-1] if self.said else "(nothing)"

    def family(self) -> list[psutil.Process]:
        """Return all its processes."""
        assert self.process is not None
        with contextlib.suppress(psutil.Error):
            coordinator = psutil.Process(self.process.pid)
            return [coordinator, *coordinator.children(recursive=True)]
        return []

    def ended(self, codes: tuple[int, ...], family: list[psutil.Process], seconds: float = 60) -> None:
        """Wait for the end and check it; `codes` are the exit codes that are right."""
        assert self.process is not None
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("gone: the campaign does not end") from None
        assert self.reader is not None
        self.reader.join(10)
        assert code in codes, f"code: exit code {code}, not {codes}: {self.last()}"
        assert not any("Traceback" in line for line in self.said), "code: a traceback"
        errors = [line for line in self.said if line.startswith("miscompile: error: ")]
        assert len(errors) == (code in (2, 3)), f"code: {len(errors)} lines of error"
        left = [one for one in psutil.wait_procs(family, 20)[1] if alive(one)]
        assert not left, f"gone: {left}"

    def check(self) -> None:
        """Check what holds whether it runs or not."""
        twice = {name for name in self.announced if self.announced.count(name) > 1}
        assert not twice, f"once: announced again: {sorted(twice)}"
        with Store.open(self.out, create=False) as store:
            rows = {record.identifier for record in store.findings()}
            for name in set(self.announced) - self.excused:
                store.load(name)
                assert name in rows, f"kept: {name} is not in the index"
            tests = store.counters().get("tests", 0)
        assert tests >= self.tests, f"counters: {tests} tests after {self.tests}"
        self.tests = tests

    def stop(self) -> None:
        """Stop it as a CI job does."""
        family = self.family()
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.ended((0, 1), family)


def alive(process: psutil.Process) -> bool:
    """Tell whether a process exists and is no zombie."""
    with contextlib.suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


# The processes of a campaign ------------------------------------------------------------------------------------------


def _named(campaign: Campaign, module: str) -> list[psutil.Process]:
    found = []
    for one in campaign.family()[1:]:
        with contextlib.suppress(psutil.Error):
            if f"miscompile.{module}" in one.cmdline():
                found.append(one)
    return found


def lanes(campaign: Campaign) -> list[psutil.Process]:
    """The lanes."""
    return _named(campaign, "engine.lane")


def zygotes(campaign: Campaign) -> list[psutil.Process]:
    """The zygotes: processes of that module whose parent is none of them."""
    found = _named(campaign, "execution.zygote")
    pids = {one.pid for one in found}
    return [one for one in found if one.ppid() not in pids]


def workers(campaign: Campaign) -> list[psutil.Process]:
    """The workers, which zygotes have forked."""
    found = _named(campaign, "execution.zygote")
    pids = {one.pid for one in found}
    return [one for one in found if one.ppid() in pids]


def triage_workers(campaign: Campaign) -> list[psutil.Process]:
    """The triage workers; one is started at the first finding."""
    return _named(campaign, "triage.worker")


def one_of(found: list[psutil.Process], rng: random.Random) -> psutil.Process:
    """Return one of the processes. Raises Skipped when there is none now."""
    if not found:
        raise Skipped("there is no such process at this moment")
    return rng.choice(found)


# The faults -----------------------------------------------------------------------------------------------------------

Fault = Callable[[Campaign, random.Random], None]
"""Injects one fault, and returns once the campaign runs again. Raises AssertionError when it does not as promised."""


def killing(who: Callable[[Campaign], list[psutil.Process]]) -> Fault:
    """Kill one process; the campaign goes on."""

    def fault(campaign: Campaign, rng: random.Random) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            one_of(who(campaign), rng).kill()
        campaign.progress()

    return fault


def pausing(who: Callable[[Campaign], list[psutil.Process]], seconds: float) -> Fault:
    """Stop one process for a while; the campaign goes on."""

    def fault(campaign: Campaign, rng: random.Random) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            one = one_of(who(campaign), rng)
            one.suspend()
            time.sleep(seconds)
            one.resume()
        campaign.progress()

    return fault


def hang_worker(campaign: Campaign, rng: random.Random) -> None:
    """Stop a worker for good while it is used: the pool must replace it. Nobody notices before it is used."""
    with contextlib.suppress(psutil.NoSuchProcess):
        before = {one.pid: one.num_ctx_switches() for one in workers(campaign)}
        time.sleep(0.5)
        used = [one for one in workers(campaign) if one.num_ctx_switches() != before.get(one.pid)]
        one = one_of(used, rng)
        one.suspend()
        end = time.monotonic() + 60
        while alive(one):
            assert time.monotonic() < end, "goes on: a worker that hangs is not replaced"
            time.sleep(0.05)
    campaign.progress()


def starving(who: Callable[[Campaign], list[psutil.Process]]) -> Fault:
    """Let every further allocation of one process fail; the campaign goes on."""

    def fault(campaign: Campaign, rng: random.Random) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            one = one_of(who(campaign), rng)
            size = one.memory_info().vms
            resource.prlimit(one.pid, resource.RLIMIT_AS, (size, resource.prlimit(one.pid, resource.RLIMIT_AS)[1]))
        campaign.progress()

    return fault


def kill_coordinator(campaign: Campaign, rng: random.Random) -> None:
    """Kill the coordinator: its processes must die with it, and the campaign is resumed."""
    del rng
    family = campaign.family()
    family[0].kill()
    campaign.ended((-signal.SIGKILL,), family)
    campaign.check()
    campaign.start()


def ending(number: int) -> Fault:
    """Send the coordinator a signal that stops it, and resume."""

    def fault(campaign: Campaign, rng: random.Random) -> None:
        del rng
        family = campaign.family()
        family[0].send_signal(number)
        campaign.ended((0, 1), family)
        campaign.check()
        campaign.start()

    return fault


def fill_disk(campaign: Campaign, rng: random.Random) -> None:
    """Let no file grow any more: the campaign ends with exit code 3, and is resumed when there is room."""
    del rng
    family = campaign.family()
    for one in [family[0], *lanes(campaign), *triage_workers(campaign)]:
        with contextlib.suppress(ProcessLookupError, psutil.Error):
            hard = resource.prlimit(one.pid, resource.RLIMIT_FSIZE)[1]
            resource.prlimit(one.pid, resource.RLIMIT_FSIZE, (512, hard))
    campaign.ended((3,), family, 90)
    campaign.check()
    campaign.start()


def read_only(campaign: Campaign, rng: random.Random) -> None:
    """Take away the right to write while nothing runs: exit code 2, and the verbs that read still work."""
    del rng
    campaign.stop()
    try:
        protect(campaign.out)
        words = ["fuzz", TARGET, "--out", str(campaign.out), "--resume", "--tests", "5"]
        code, error = verb(campaign, *words)
        assert code == 2, f"code: exit code {code}, not 2: {error}"
        code, error = verb(campaign, "findings", str(campaign.out))
        assert code in (0, 1), f"code: `findings` ended with {code}: {error}"
    finally:
        unprotect(campaign.out)
        campaign.start()


def protect(out: Path) -> None:
    """Make a folder read-only: by its mode, or for root, who may write everywhere, by a mount of it upon itself."""
    if os.getuid():
        for place in (out, out / "findings"):
            place.chmod(0o555)
        return
    for words in (["--bind", str(out), str(out)], ["-o", "remount,ro,bind", str(out)]):
        if subprocess.run(["mount", *words], capture_output=True, check=False).returncode:
            raise Skipped("root may write everywhere, and must not mount here; run the benchmark as another user")


def unprotect(out: Path) -> None:
    """Undo `protect`."""
    if not os.getuid():
        subprocess.run(["umount", str(out)], capture_output=True, check=False)
        return
    for place in (out, out / "findings"):
        place.chmod(0o755)


def verb(campaign: Campaign, *words: str) -> tuple[int, str]:
    """Run another verb; return its exit code and its last line on standard error."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env=campaign.control.environment(), check=False, timeout=120
    )
    assert "Traceback" not in done.stderr, f"code: a traceback of `{words[0]}`"
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


def losing_index(spoil: Callable[[Path], object], *, running: bool) -> Fault:
    """Spoil the index, under the running campaign or after its end; every verb makes it anew."""

    def fault(campaign: Campaign, rng: random.Random) -> None:
        del rng
        if not running:
            campaign.stop()
            campaign.check()
        for path in campaign.out.glob("miscompile.db*"):
            if "damaged" not in path.name:
                spoil(path)
        if running:
            time.sleep(4.0)  # the campaign looks every three seconds
            campaign.progress()
            return
        campaign.check()
        campaign.start()

    return fault


def damage_finding(campaign: Campaign, rng: random.Random) -> None:
    """Damage the record of one finding: the others stay, the campaign goes on, and the damaged one is named."""
    names = folder.identifiers(campaign.out)
    if not names:
        raise Skipped("there is no finding yet")
    campaign.stop()
    name = rng.choice(names)
    path = campaign.out / "findings" / name / "finding.json"
    if not path.exists():  # its triage was the last to end, and made it a duplicate
        campaign.start()
        raise Skipped("the finding was a duplicate of another one")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    campaign.excused.add(name)
    try:
        campaign.check()
        code, error = verb(campaign, "replay", str(campaign.out), name)
        assert (code, "is damaged" in error) == (3, True), f"code: `replay` ended with {code}: {error}"
        campaign.start()
    finally:
        path.write_bytes(whole)
        campaign.excused.discard(name)


def jump_clock(campaign: Campaign, rng: random.Random) -> None:
    """Set the wall clock forward or back by up to a year."""
    campaign.control.set(rng.choice((-1, 1)) * rng.choice((60, 3600, 86_400, 31_536_000)), stalled=False)
    campaign.progress()
    campaign.control.set(0, stalled=False)
    campaign.progress()


def stall_writes(campaign: Campaign, rng: random.Random) -> None:
    """Hold every sync for some seconds, as a network folder does that stalls."""
    campaign.control.set(0, stalled=True)
    time.sleep(rng.choice((1.0, 3.0)))
    campaign.control.set(0, stalled=False)
    campaign.progress()


FAULTS: dict[str, Fault] = {
    "SIGKILL of a worker": killing(workers),
    "SIGKILL of a zygote": killing(zygotes),
    "SIGKILL of a lane": killing(lanes),
    "SIGKILL of a triage worker": killing(triage_workers),
    "SIGKILL of the coordinator": kill_coordinator,
    "SIGTERM": ending(signal.SIGTERM),
    "SIGHUP": ending(signal.SIGHUP),
    "SIGSTOP of a lane, 1 s": pausing(lanes, 1.0),
    "SIGSTOP of a zygote, 1 s": pausing(zygotes, 1.0),
    "SIGSTOP of the coordinator, 1 s": pausing(lambda campaign: campaign.family()[:1], 1.0),
    "a worker hangs": hang_worker,
    "allocations fail in a worker": starving(workers),
    "allocations fail in a lane": starving(lanes),
    "full disk": fill_disk,
    "read-only folder": read_only,
    "index deleted": losing_index(Path.unlink, running=False),
    "index overwritten": losing_index(lambda path: path.write_bytes(b"garbage" * 999), running=False),
    "index deleted while it runs": losing_index(Path.unlink, running=True),
    "damaged finding": damage_finding,
    "clock jump": jump_clock,
    "stalled writes": stall_writes,
}


@dataclass
class Row:
    """The results of one kind of fault."""

    passed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)
    reasons: set[str] = field(default_factory=set)


def injected(rows: dict[str, Row], campaign: Campaign, kind: str, rng: random.Random) -> bool:
    """Inject one fault and check; return whether the campaign can go on."""
    row = rows.setdefault(kind, Row())
    try:
        FAULTS[kind](campaign, rng)
        campaign.check()
    except Skipped as reason:
        row.skipped += 1
        row.reasons.add(str(reason))
        return True
    except (AssertionError, MiscompileError, OSError, subprocess.TimeoutExpired) as error:
        row.failures.append(str(error))
        return False
    row.passed += 1
    return True


def fill_cache(place: Path, cache: Path) -> None:
    """Start a campaign and stop it: the first one on a machine asks the target what it takes."""
    campaign = Campaign(place / "first", Control(place, cache), 0)
    campaign.start(1200)
    campaign.stop()


def play(control: Control, faults: int, kinds: list[str], seed: int, each: int, until: float) -> dict[str, Row]:
    """Inject so many faults, `each` into one campaign; every kind comes once before any comes twice.

    Stop at the monotonic time `until`.
    """
    rng, rows, queue = random.Random(seed), dict[str, Row](), list[str]()
    place = control.place
    control.build()
    campaign, left, number, tries = None, 0, 0, 0
    while sum(row.passed + len(row.failures) for row in rows.values()) < faults and tries < 3 * faults + 10:
        tries += 1
        if time.monotonic() > until:
            break
        if campaign is None or not left:
            if campaign is not None:
                finish(campaign)
            number += 1
            campaign, left = Campaign(place / f"out-{number}", control, seed + number), each
            campaign.start()
        if not queue:
            queue = rng.sample(kinds, len(kinds))
        kind = queue.pop()
        left -= 1
        fine = injected(rows, campaign, kind, rng)
        print(f"{kind}: {'passed or skipped' if fine else rows[kind].failures[-1]}", file=sys.stderr, flush=True)
        if not fine:
            print(*campaign.said[-8:], sep="\n", file=sys.stderr, flush=True)
            with contextlib.suppress(Skipped):
                control.set(0, stalled=False)
            left = 0
    if campaign is not None:
        finish(campaign)
    return rows


def play_parallel(parallel: int, faults: int, kinds: list[str], seed: int, each: int, until: float) -> dict[str, Row]:
    """Call `play` in so many processes, each with its share of the faults, its seed and its folder; add up the results.

    Most of the time of a fault is a wait for the campaign, so that several campaigns share the cores.
    """
    with TemporaryDirectory(prefix="miscompile-faults-") as name:
        scratch = Path(name)
        fill_cache(scratch, scratch / "cache")
        with ProcessPoolExecutor(parallel, mp_context=get_context("spawn")) as processes:
            runs = []
            for number in range(parallel):
                place, share = scratch / str(number), faults // parallel + (number < faults % parallel)
                place.mkdir()
                control = Control(place, scratch / "cache")
                runs.append(processes.submit(play, control, share, kinds, seed + 1000 * number, each, until))
            return merged(run.result() for run in runs)


def merged(parts: Iterable[dict[str, Row]]) -> dict[str, Row]:
    """Add up the results of several runs."""
    rows: dict[str, Row] = {}
    for part in parts:
        for kind, row in part.items():
            whole = rows.setdefault(kind, Row())
            whole.passed += row.passed
            whole.skipped += row.skipped
            whole.failures += row.failures
            whole.reasons |= row.reasons
    return rows


def finish(campaign: Campaign) -> None:
    """End a campaign and its processes, whatever state it is in."""
    family = campaign.family()
    for one in family:
        with contextlib.suppress(psutil.Error):
            one.kill()
    if campaign.process is not None:
        campaign.process.wait(20)


def table(rows: dict[str, Row]) -> str:
    """Return the results as a table in Markdown."""
    lines = ["| fault | injected | passed | failed | remark |", "|---|---|---|---|---|"]
    for kind in FAULTS:
        if kind in rows:
            row = rows[kind]
            remark = "; ".join(sorted({*row.failures, *row.reasons}))[:200]
            count = row.passed + len(row.failures)
            lines.append(f"| {kind} | {count} | {row.passed} | {len(row.failures)} | {remark} |")
    passed, failed = sum(row.passed for row in rows.values()), sum(len(row.failures) for row in rows.values())
    return "\n".join([*lines, f"| all | {passed + failed} | {passed} | {failed} | |"])


def main() -> int:
    """Run the faults; exit code 1 when an invariant was broken."""
    parser = argparse.ArgumentParser(description="Inject faults into campaigns and check that nothing is lost.")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--parallel", type=int, default=1, help="campaigns at the same time")
    parser.add_argument("--each", type=int, default=40, help="faults in one campaign")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=sorted(FAULTS), help="only this kind; can be repeated")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    kinds, until = options.kind or list(FAULTS), began + options.seconds
    rows = play_parallel(options.parallel, options.faults, kinds, options.seed, options.each, until)
    seconds = round(time.monotonic() - began, 1)
    if options.json:
        data = {
            kind: {
                "passed": row.passed,
                "skipped": row.skipped,
                "failures": row.failures,
                "reasons": sorted(row.reasons),
            }
            for kind, row in rows.items()
        }
        print(json.dumps({"seed": options.seed, "seconds": seconds, "faults": data}, indent=2))
    else:
        print(table(rows))
        print(f"\n{seconds:.0f} s, seed {options.seed}")
    return int(any(row.failures for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
