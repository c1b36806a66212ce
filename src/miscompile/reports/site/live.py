"""The site over HTTP, made anew from the stores at each request, for this machine alone."""

import errno
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import unquote, urlsplit

from miscompile.base.errors import MiscompileError, UsageError
from miscompile.reports.site.content import SUPPORT, Reader, support_tables
from miscompile.reports.site.pages import (
    INDEX,
    PASSES,
    SiteView,
    overview_page,
    passes_page,
    problem_page,
    support_page,
)
from miscompile.reports.site.pages import SUPPORT as SUPPORT_PAGE
from miscompile.reports.site.since import since_last
from miscompile.reports.site.writer import page_of

LOOPBACK = "127.0.0.1"


class SiteServer(ThreadingHTTPServer):
    """Serves the site of the campaigns in `outs`; make one with `SiteServer.start`.

    Requests run in threads, because a browser holds connections open that it does not use. Pages are made one by one.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, outs: Sequence[Path], refresh: int, support: Sequence[Path]) -> None:
        super().__init__((LOOPBACK, port), _Handler)
        self._outs, self._refresh, self._support = outs, refresh, support
        self._reader, self._one = Reader(), Lock()

    @classmethod
    def start(cls, outs: Sequence[Path], port: int, refresh: int = 0, support: Sequence[Path] = ()) -> "SiteServer":
        """Listen on `port` of the loopback address, 0 for any that is free; pages load anew after `refresh` seconds.

        Raises InputError for a folder without a campaign, UsageError for a port that cannot be had.
        """
        Reader().read(outs)
        try:
            return cls(port, outs, refresh, support)
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "is taken by another process" if taken else f"cannot be used: {error.strerror or error}"
            raise UsageError(f"port {port} {why}; choose another --port") from None

    @property
    def address(self) -> str:
        """The address of the overview."""
        return f"http://{LOOPBACK}:{self.server_port}/"

    def page(self, path: str) -> tuple[HTTPStatus, str]:
        """Return the status and the text of the page at `path`; an error of a store is a page that says it."""
        with self._one:
            try:
                return self._page(path)
            except MiscompileError as error:
                return HTTPStatus.INTERNAL_SERVER_ERROR, problem_page(str(error))

    def _page(self, path: str) -> tuple[HTTPStatus, str]:
        stores = self._reader.read(self._outs)
        tables, problems = support_tables([*(out / SUPPORT for out in self._outs), *self._support])
        site = SiteView(stores, since_last(stores, {}), tables, problems, self._refresh)
        whole: dict[str, Callable[[SiteView], str]] = {"": overview_page, INDEX: overview_page, PASSES: passes_page}
        if tables:
            whole[SUPPORT_PAGE] = support_page
        if path in whole:
            return HTTPStatus.OK, whole[path](site)
        for contents in stores:
            for entry in contents.entries:
                if entry.page == path:
                    return HTTPStatus.OK, page_of(site, contents, entry, self._reader)
        return HTTPStatus.NOT_FOUND, problem_page("there is no such page; the finding may be merged with another one")


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: SiteServer
    server_version = "miscompile"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in (LOOPBACK, "localhost"):  # a page of the web whose name was made to mean this machine
            self._answer(HTTPStatus.FORBIDDEN, problem_page(f"this server answers to {self.server.address} only"))
            return
        self._answer(*self.server.page(unquote(urlsplit(self.path).path).removeprefix("/")))

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, because the terminal is for errors."""

    def _answer(self, status: HTTPStatus, text: str) -> None:
        data = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(data)
