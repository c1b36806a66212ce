"""`miscompile serve`: the site of a store as it stands, on the loopback address alone."""

import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest
from click.testing import CliRunner
from site_stores import Page, a_store, a_stored

from miscompile.cli.main import program
from miscompile.findings.store import Store
from miscompile.reports.site.live import LOOPBACK, SiteServer


def get(server: SiteServer, path: str, host: str = "") -> tuple[int, Page]:
    connection = HTTPConnection(LOOPBACK, server.server_port, timeout=30)
    try:
        connection.request("GET", path, headers={"Host": host} if host else {})
        answer = connection.getresponse()
        return answer.status, Page(answer.read().decode())
    finally:
        connection.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return a_store(tmp_path / "out", ending="")


@pytest.fixture
def server(out: Path) -> Iterator[SiteServer]:
    with SiteServer.start([out], 0, 15) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def test_pages_are_made_anew_while_a_campaign_writes(server: SiteServer, out: Path) -> None:
    with Store.open(out) as store:
        assert "wrong-0000000009" not in get(server, "/")[1].text
        store.add_pending(a_stored("wrong-0000000009"))
        status, page = get(server, "/")
        assert (status, "wrong-0000000009" in page.text) == (200, True)
    assert ("body", {"data-refresh": "15"}) in page.tags
    assert "out/wrong-0000000009.html" in page.links
    assert get(server, "/out/wrong-0000000009.html")[0] == 200
    assert get(server, "/passes.html")[0] == 200


def test_what_is_not_there_is_a_page_that_says_so(server: SiteServer, out: Path) -> None:
    for path in ("/none.html", "/../../etc/passwd", "/out/wrong-0000000008.html", "/%2e%2e/x", "//x"):
        status, page = get(server, path)
        assert status == 404
        assert "there is no such page" in page.text
    (out / "findings" / "wrong-0000000001" / "finding.json").write_text("{")
    assert "wrong-0000000001" in get(server, "/")[1].text


def test_a_name_of_the_web_that_means_this_machine_is_refused(server: SiteServer) -> None:
    status, page = get(server, "/", "evil.example:80")
    assert status == 403
    assert "wrong-" not in page.text
    assert get(server, "/", f"localhost:{server.server_port}")[0] == 200


def test_it_listens_on_the_loopback_address(server: SiteServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_port}/"


def test_a_port_that_is_taken_is_one_line(out: Path) -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(program, ["serve", str(out), "--port", str(port)])
    assert result.exit_code == 2
    assert result.stderr == f"miscompile: error: port {port} is taken by another process; choose another --port\n"


def test_ctrl_c_is_a_clean_end(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: SiteServer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SiteServer, "serve_forever", interrupted)
    result = CliRunner().invoke(program, ["serve", str(out), "--port", "0"])
    assert (result.exit_code, result.stderr) == (0, "miscompile: stopped\n")
    assert result.stdout.startswith("http://127.0.0.1:")
