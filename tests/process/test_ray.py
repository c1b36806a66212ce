"""Campaigns on a Ray cluster: several nodes on this machine make the same tests and find the same as one machine."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from campaigns import Campaign, Start, all_gone, counters

from miscompile.findings.ledger import LEDGER, Ledger
from miscompile.findings.store import Store

pytestmark = [
    pytest.mark.process,
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (miscompile[ray])"),
]

TARGET = "toy{bugs=sub_commutes+checked_gather+sub_self_dtype+rank0_key_error+folding_in_float32}"
WORDS = (TARGET, "--seed", "7")
STORE = 80 << 20

CLUSTER = """
import json, os, sys
from ray.cluster_utils import Cluster

arguments = {"num_cpus": 1, "object_store_memory": int(sys.argv[2]), "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=arguments)
workers = [cluster.add_node(**arguments) for _ in range(int(sys.argv[1]) - 1)]
print(cluster.address, flush=True)
for line in sys.stdin:
    if line.strip() == "kill":
        cluster.remove_node(workers.pop(), allow_graceful=False)
        print("killed", flush=True)
    else:
        workers.append(cluster.add_node(**arguments))
        print("added", flush=True)
cluster.shutdown()
"""
"""Ray's own cluster for tests, in a process of its own, because it changes signal handlers and leaves threads."""


class RayCluster:
    """Nodes with one CPU each on this machine; the first one cannot be killed."""

    def __init__(self, nodes: int, cache: Path) -> None:
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "RAY_AUTH_MODE": "token", "HOME": str(cache)}
        cache.mkdir(exist_ok=True)
        (cache / ".ray").mkdir(exist_ok=True)
        (cache / ".ray" / "auth_token").write_text("0" * 64)
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER, str(nodes), str(STORE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
            start_new_session=True,
        )
        self.address = self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, word: str) -> None:
        """Kill a node, or add one."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self._answer() in ("killed", "added")

    def shards(self) -> list[psutil.Process]:
        """The processes of shards that run on the nodes now, with all their descendants."""
        found = []
        for one in psutil.process_iter(["cmdline"]):
            if "miscompile.engine.distributed.shard" in (one.info["cmdline"] or []) and self._owns(one):
                found += [one, *one.children(recursive=True)]
        return found

    def _owns(self, process: psutil.Process) -> bool:
        try:
            words = [word for parent in process.parents() for word in parent.cmdline()]
        except psutil.Error:
            return False
        return any(self.address in word for word in words)

    def close(self) -> None:
        """Shut all nodes down."""
        family = psutil.Process(self.process.pid).children(recursive=True)
        self.process.communicate(timeout=60)
        all_gone(family, 30)


@pytest.fixture
def cluster(request: pytest.FixtureRequest, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayCluster]:
    """A cluster of `request.param` nodes."""
    running = RayCluster(request.param, cache)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("HOME", str(cache))
    yield running
    running.close()


def signatures(out: Path) -> list[str]:
    """The signatures of the confirmed findings so far, sorted."""
    if not (out / "findings").is_dir():
        return []
    with Store.open(out, create=False) as store:
        return sorted(record.signature for record in store.findings("confirmed"))


def announced(stderr: str) -> list[str]:
    """The signatures of the findings that the display announced, in order."""
    return sorted(re.findall(r"^found \S+: (.+?)(?: \(\d+ nodes?\))?: ", stderr, re.M))


def alone(out: Path, start: Start, tests: int, lanes: int) -> list[str]:
    """Run the campaign on one machine, without Ray; return the signatures."""
    code, _, stderr = start(out, *WORDS, "--tests", str(tests), "--workers", str(lanes)).end(180)
    assert code == 1, stderr
    return signatures(out)


def on(cluster: RayCluster, out: Path, start: Start, *words: str) -> Campaign:
    return start(out, *WORDS, "--ray", cluster.address, *words)


@pytest.mark.parametrize("cluster", [2, 4], indirect=True)
def test_nodes_find_what_one_machine_finds(tmp_path: Path, start: Start, cluster: RayCluster) -> None:
    code, _, stderr = on(cluster, tmp_path / "ray", start, "--tests", "320", "--workers", "4").end(300)
    assert code == 1, stderr
    expected = alone(tmp_path / "alone", start, 320, 4)
    assert len(expected) >= 4
    assert signatures(tmp_path / "ray") == expected
    assert announced(stderr) == expected
    assert counters(tmp_path / "ray")["tests"] == counters(tmp_path / "alone")["tests"] == 320
    assert cluster.shards() == []


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_the_shard_of_a_killed_node_is_done_again(tmp_path: Path, start: Start, cluster: RayCluster) -> None:
    campaign = on(cluster, tmp_path / "ray", start, "--tests", "600", "--workers", "3")
    campaign.until(lambda: len(_leads(cluster)) == 2, 120)
    time.sleep(3.0)
    before = cluster.shards()
    cluster.ask("kill")
    campaign.until(lambda: any(not one.is_running() for one in before), 60)
    code, _, stderr = campaign.end(300)
    assert code == 1, stderr
    assert "its shard is done again" in stderr
    expected = alone(tmp_path / "alone", start, 600, 3)
    assert signatures(tmp_path / "ray") == expected
    assert announced(stderr) == expected
    assert counters(tmp_path / "ray")["tests"] == 600
    all_gone(before)


def _leads(cluster: RayCluster) -> list[psutil.Process]:
    return [one for one in cluster.shards() if "miscompile.engine.distributed.shard" in one.cmdline()]


@pytest.mark.parametrize("cluster", [2], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_keeps_what_was_found(tmp_path: Path, start: Start, cluster: RayCluster, number: signal.Signals) -> None:
    campaign = on(cluster, tmp_path, start, "--time", "1500")
    campaign.until(lambda: bool(signatures(tmp_path)), 180)
    shards = cluster.shards()
    assert shards
    campaign.process.send_signal(number)
    code, stdout, stderr = campaign.end(90)
    assert code == 1, stderr
    assert "stopped; continue with --resume" in stderr
    assert "Traceback" not in stderr
    all_gone(shards)
    with Store.open(tmp_path) as store:
        assert [ending for *_, ending in store.sessions()] == ["interrupted"]
        assert store.counters()["tests"] > 0
        found = [record.signature for record in store.findings("confirmed")]
    assert len(set(found)) == len(found), stdout


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_a_campaign_is_resumed_on_a_cluster_and_on_one_machine(
    tmp_path: Path, start: Start, cluster: RayCluster
) -> None:
    """The ledger of the head knows what earlier sessions found, so that nothing is announced again."""
    code, _, stderr = on(cluster, tmp_path, start, "--tests", "200", "--workers", "2").end(180)
    assert code == 1, stderr
    first = announced(stderr)
    assert len(first) >= 3
    for words in (("--ray", cluster.address), ()):
        code, _, stderr = start(tmp_path, *WORDS, *words, "--resume", "--tests", "200", "--workers", "2").end(180)
        assert code == 1, stderr
        assert not set(announced(stderr)) & set(first)
        first += announced(stderr)
    assert signatures(tmp_path) == sorted(first)
    assert counters(tmp_path)["tests"] == 600
    with Ledger.open(tmp_path / LEDGER) as ledger:
        assert {entry.key for entry in ledger.entries()} == set(first)


@pytest.mark.parametrize("cluster", [1], indirect=True)
def test_a_wrong_token_is_a_usage_error(
    tmp_path: Path, start: Start, cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ray").mkdir(parents=True)
    (home / ".ray" / "auth_token").write_text("1" * 64)
    monkeypatch.setenv("HOME", str(home))
    code, _, stderr = on(cluster, tmp_path / "out", start, "--tests", "10").end(180)
    assert code == 2, stderr
    assert "token" in stderr
    assert "Traceback" not in stderr


@pytest.mark.parametrize("cluster", [2], indirect=True)
def test_shards_die_with_the_head(tmp_path: Path, start: Start, cluster: RayCluster) -> None:
    campaign = on(cluster, tmp_path, start, "--time", "1500")
    campaign.until(lambda: bool(cluster.shards()), 120)
    shards = cluster.shards()
    campaign.process.kill()
    all_gone(shards, 60)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "ray://127.0.0.1:10001"])
def test_a_cluster_that_is_not_there_is_a_usage_error(tmp_path: Path, start: Start, address: str) -> None:
    code, _, stderr = start(tmp_path / "out", "toy", "--tests", "10", "--ray", address).end()
    assert code == 2, stderr
    assert f"--ray {address}: " in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("--ray-python", "python3"), ("--ray", "auto", "--workers", "2")])
def test_options_that_do_not_go_together_are_usage_errors(tmp_path: Path, start: Start, words: tuple[str, ...]) -> None:
    code, _, stderr = start(tmp_path / "out", "toy", *words).end()
    assert code == 2, stderr
    assert "--ray" in stderr
