"""The site in a real browser: no error, no sideways scrolling, working links, filters and copying."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from site_stores import HOSTILE, a_store

from miscompile.reports.site.writer import write_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra `browser`)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 180_000
"""Milliseconds; a busy machine starts a browser slowly."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with sync_api.sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=flags, timeout=PATIENCE)
        yield found
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("browser")
    long = f"{HOSTILE}{'x' * 300}"
    write_site([a_store(root / "hostile", long), a_store(root / "plain")], root / "site")
    return root / "site"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_have_no_error_and_fit_the_window(browser: "Browser", site: Path, width: int, scheme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=cast("Any", scheme))
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    names = ["index.html", "passes.html", "hostile/wrong-0000000001.html", "plain/wrong-0000000001.html"]
    for name in names:
        page.goto((site / name).as_uri())
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (scheme == "dark")
    assert said == []
    assert [address for address in asked if not address.startswith(("file:", "data:"))] == []
    context.close()


def test_filters_links_and_copying_work(browser: "Browser", site: Path) -> None:
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto((site / "index.html").as_uri())
    assert page.locator("#shown").text_content() == "12 of 12"
    page.fill("[name=q]", "Fuse unconfirmed")
    assert page.locator("#shown").text_content() == "2 of 12"
    page.select_option("[name=store]", "plain")
    assert page.locator("#findings tbody tr:visible").count() == 1
    page.reload()
    assert page.locator("#shown").text_content() == "1 of 12"
    page.click("button[type=reset]")
    page.wait_for_function("document.getElementById('shown').textContent === '12 of 12'")
    page.click("a[href='#arm=motifs%2Flevels'] >> nth=0")
    page.wait_for_function("document.getElementById('shown').textContent === '6 of 12'")
    page.click("#findings tbody tr:visible a >> nth=0")
    page.wait_for_load_state()
    page.click("button[data-copy=script]")
    page.wait_for_function("document.querySelector('[data-copy=script]').textContent !== 'Copy script'")
    page.click("nav a >> nth=0")
    page.wait_for_load_state()
    assert page.locator("h1").text_content() == "Findings"
    page.close()
