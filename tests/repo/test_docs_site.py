"""The documentation builds as a site, without a broken link, and works as files without a network."""

import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LOADED = re.compile(r"<(?:(?:script|img|iframe|source)\b[^>]*\bsrc|link\b[^>]*\bhref)=[\"']?(https?:)?//")
"""What a browser loads by itself, as opposed to a link that a reader follows."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file()


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if LOADED.search(page.read_text("utf-8"))] == []
    assert not list(site.rglob("*font*"))


def test_the_interfaces_are_documented(site: Path) -> None:
    text = (site / "reference.html").read_text("utf-8")
    for name in ("testing.alike.assert_compiles_alike", "strategies.models", "targets.about.About", "ops.spec.OpSpec"):
        assert f'id="miscompile.{name}"' in text


@pytest.mark.skipif(CHROMIUM is None or find_spec("playwright") is None, reason="needs Chromium and the extra browser")
def test_the_search_works_in_pages_opened_as_files(site: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url) if request.url.startswith("http") else None)
        page.goto(f"{site.as_uri()}/tutorial.html")
        page.click("input.md-search__input")
        page.wait_for_selector("text=Type to start searching")
        page.type("input.md-search__input", "bisect")
        page.wait_for_selector(".md-search-result__link[href*='commands.html#miscompile-bisect']", state="attached")
        browser.close()
    assert wrong == []


Hook = Callable[..., str]


@pytest.fixture
def hook() -> Hook:
    found: Hook = runpy.run_path(str(ROOT / ".ci" / "site.py"))["on_page_markdown"]
    return found


def linked(hook: Hook, text: str, page: str = "a.md") -> str:
    config = {"docs_dir": str(ROOT / "docs"), "extra": {"repository": "https://example.org/r"}}
    return hook(text, SimpleNamespace(file=SimpleNamespace(src_uri=page)), config)


def test_links_out_of_the_pages_lead_to_the_repository(hook: Hook) -> None:
    assert linked(hook, "[a](../README.md#b)") == "[a](https://example.org/r/blob/main/README.md#b)"
    assert linked(hook, "[a](../benchmarks)") == "[a](https://example.org/r/tree/main/benchmarks)"
    assert linked(hook, "[a](../../PAPERS.md)", "decisions/0001-layout.md").endswith("/blob/main/PAPERS.md)")


def test_links_between_the_pages_stay(hook: Hook) -> None:
    for text in ("[a](tutorial.md)", "[a](https://example.org)", "[a](#b)"):
        assert linked(hook, text) == text
    assert linked(hook, "[a](../numerics.md)", "decisions/0001-layout.md") == "[a](../numerics.md)"


def test_a_link_to_no_file_stops_the_build(hook: Hook) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.md"):
        linked(hook, "[a](../none.md)")
