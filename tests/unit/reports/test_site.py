"""The static site: complete pages that work offline, in which no name of a model becomes markup or script."""

import base64
import hashlib
import json
import os
import shutil
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result
from site_stores import HOSTILE, Page, a_store, a_stored

from miscompile.cli.main import program
from miscompile.findings.store import Campaign, Store
from miscompile.reports.site.content import Reader, labels, web_link
from miscompile.reports.site.since import STATE
from miscompile.reports.site.writer import write_site

KNOWN_TAGS = frozenset(
    {
        *(
            "html",
            "head",
            "meta",
            "link",
            "title",
            "style",
            "script",
            "body",
            "header",
            "nav",
            "main",
            "section",
            "div",
        ),
        *(
            "a",
            "p",
            "h1",
            "h2",
            "h3",
            "h4",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "small",
            "br",
            "strong",
            "span",
        ),
        *(
            "form",
            "label",
            "input",
            "select",
            "option",
            "button",
            "output",
            "ul",
            "li",
            "dl",
            "dt",
            "dd",
            "pre",
            "code",
        ),
        *("svg", "rect", "path", "text", "g", "figure", "figcaption", "details", "summary"),
    }
)


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(program, [str(word) for word in words])


def table(version: str, status: str, name: str = "") -> str:
    row = {"name": f"test_relu{name}", "op": f"Relu{name}", "version": 14, "dtype": f"float32{name}", "status": status}
    rows = [{**row, "message": name}]
    data = {"format": 1, "target": f"toy=={version}", "versions": {"toy": version}, "level": "full", "rows": rows}
    return json.dumps(data)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a store with hostile names in a folder with a hostile name, and of another one."""
    root = tmp_path_factory.mktemp("hostile")
    out = a_store(root / "a\"><b 'c' {{x}} <script>", HOSTILE)
    (out / "support").mkdir()
    (out / "support" / "1.json").write_text(table("1.0", "pass", HOSTILE))
    (out / "support" / "2.json").write_text(table("2.0", f"crash{HOSTILE}", HOSTILE))
    (out / "support" / "3.json").write_text("{}")
    site = root / "site"
    write_site([out, a_store(root / "plain")], site)
    return site


def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def test_a_site_has_an_overview_the_passes_the_tables_and_a_page_for_each_finding(hostile: Path) -> None:
    names = {str(path.relative_to(hostile)) for path in pages(hostile)}
    assert {"index.html", "passes.html", "support.html", "plain/wrong-0000000001.html"} < names
    assert len(names) == 3 + 2 * 6


def test_no_name_becomes_markup_or_script(hostile: Path) -> None:
    folder = files("miscompile.reports") / "templates" / "site"
    script, style = ((folder / name).read_text("utf-8").strip() for name in ("site.js", "site.css"))
    for path, page in pages(hostile).items():
        assert page.raw == {"script": [script], "style": [style]}, path
        assert {tag for tag, _ in page.tags} <= KNOWN_TAGS, path
        names = {name for _, attributes in page.tags for name in attributes}
        assert not [name for name in names if name.startswith("on") or name in ("style", "src", "srcdoc", "action")]
        assert "\u202e" not in path.read_text("utf-8")
        for link in page.links:
            assert link.split(":")[0] in ("https", "http") or ":" not in link.partition("#")[0] or link == "data:,"


def test_hostile_names_are_shown_as_they_are(hostile: Path) -> None:
    shown = [
        path for path, page in pages(hostile).items() if "{{7*7}}{% raw %}<img src=x onerror=alert(2)>" in page.text
    ]
    assert {path.name for path in shown} >= {"index.html", "passes.html", "support.html", "wrong-0000000001.html"}
    assert not [path for path, page in pages(hostile).items() if "49{%" in page.text]


def test_the_policy_admits_the_one_script_and_style_alone(hostile: Path) -> None:
    for page in pages(hostile).values():
        (policy,) = [one["content"] for _, one in page.tags if one.get("http-equiv") == "Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        for kind, (text,) in page.raw.items():
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy


def test_every_link_leads_somewhere(hostile: Path) -> None:
    found = pages(hostile)
    for path, page in found.items():
        assert len(page.identifiers) == len(set(page.identifiers))
        for link in page.links:
            address, _, fragment = link.partition("#")
            if link == "data:," or link.startswith("http"):
                continue
            goal = (path.parent / unquote(address)).resolve() if address else path
            assert goal in found, link
            keys = ("store=", "arm=", "target=", "check=", "pass=", "kind=")
            assert not fragment or fragment in found[goal].identifiers or fragment.startswith(keys)


def test_only_addresses_of_the_web_are_links() -> None:
    assert web_link("https://github.com/a/b/issues/1") == "https://github.com/a/b/issues/1"
    for text in ("javascript:alert(1)", "https://a b", "//a", "https://a\njavascript:alert(1)", "data:text/html,x", ""):
        assert web_link(text) == ""


def test_a_finding_shows_its_graph_its_values_and_the_bound_of_each_element(tmp_path: Path) -> None:
    write_site([a_store(tmp_path / "out")], tmp_path / "site")
    page = Page((tmp_path / "site" / "out" / "wrong-0000000001.html").read_text("utf-8"))
    classes = [attributes.get("class", "") for _, attributes in page.tags]
    assert classes.count("box node") == 4, "two nodes, before the reduction as well"
    assert "box wrong" in classes
    assert "edge marked" in classes
    assert classes.count("wrong") == 1
    for text in (
        "0.25",
        "-2.0",
        "first bad release",
        "toy 2.0",
        "print(1)",
        "# Title",
        "met while examining",
    ):
        assert text in page.text


def test_the_overview_counts_by_target_technique_check_and_pass(tmp_path: Path) -> None:
    write_site([a_store(tmp_path / "out")], tmp_path / "site")
    page = Page((tmp_path / "site" / "index.html").read_text("utf-8"))
    assert {"#target=toy", "#arm=motifs%2Flevels", "#check=levels", "#pass=Fuse", "#kind=wrong"} <= set(page.links)
    curves = [one["class"] for tag, one in page.tags if tag == "path" and "curve" in one.get("class", "")]
    assert curves == ["curve g-new", "curve g-known", "curve g-fixed", "curve g-non-default", "curve g-unconfirmed"]
    for text in ("1,200", "reported", "compiler", "83 %"):
        assert text in page.text


def test_the_passes_that_never_fired_are_listed(tmp_path: Path) -> None:
    write_site([a_store(tmp_path / "out")], tmp_path / "site")
    page = Page((tmp_path / "site" / "passes.html").read_text("utf-8"))
    assert "Never" in page.text.partition("Passes that changed none")[2]
    assert len([one for tag, one in page.tags if one.get("class", "").startswith("shade")]) == 4
    assert "Fuse and Fold: 2" in page.text


def test_a_site_that_is_written_again_says_what_is_new(tmp_path: Path) -> None:
    out, site = a_store(tmp_path / "out"), tmp_path / "site"
    write_site([out], site)
    assert "Since" not in Page((site / "index.html").read_text("utf-8")).text.partition("All findings")[0]
    with Store.open(out) as store:
        store.add_pending(a_stored("wrong-0000000009", test=900))
        store.add_counters({"tests": 50})
        gone = store.load("wrong-0000000005")
    shutil.rmtree(out / "findings" / gone.finding.identifier)
    write_site([out], site)
    text = " ".join(Page((site / "index.html").read_text("utf-8")).text.split())
    assert "50 tests, 1 findings more, 0 changed" in text
    (site / STATE).write_text("{")
    write_site([out], site)
    assert "Since" not in Page((site / "index.html").read_text("utf-8")).text.partition("All findings")[0]


def test_without_a_site_before_the_last_session_is_what_is_new(tmp_path: Path) -> None:
    out = a_store(tmp_path / "out")
    with Store.open(out) as store:
        store.choose(1)
        store.begin_session(100.0)
        store.add_pending(a_stored("wrong-0000000009", session=2))
    write_site([out], tmp_path / "site")
    text = " ".join(Page((tmp_path / "site" / "index.html").read_text("utf-8")).text.split())
    assert "Since the last session began 1 findings more" in text
    assert "running, or killed" in text


def test_a_damaged_finding_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    out = a_store(tmp_path / "out")
    (out / "findings" / "wrong-0000000001" / "finding.json").write_text("{")
    odd = json.loads((out / "findings" / "wrong-0000000002" / "finding.json").read_text())
    odd["facts"]["faulty"] = "no build"
    (out / "findings" / "wrong-0000000002" / "finding.json").write_text(json.dumps(odd))
    result = call("report", out, "--out", tmp_path / "site")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'site' / 'index.html'}\n")
    for line, name in zip(result.stderr.splitlines(), ("wrong-0000000001", "wrong-0000000002"), strict=True):
        assert line.startswith("miscompile: warning: ")
        assert name in line
    page = Page((tmp_path / "site" / "index.html").read_text("utf-8"))
    assert "out/wrong-0000000003.html" in page.links
    assert not [link for link in page.links if "0001" in link or "0002" in link]
    assert "wrong-0000000001" in page.text


def test_an_empty_store_is_a_site(tmp_path: Path) -> None:
    with Store.open(tmp_path / "out") as store:
        store.begin(Campaign("toy", 7, {}, {}, 0.0))
    assert call("report", tmp_path / "out", "site").stdout.splitlines()[0] == str(tmp_path / "out/site/index.html")
    text = Page((tmp_path / "out" / "site" / "index.html").read_text("utf-8")).text
    assert "Nothing found: no test has been counted yet." in " ".join(text.split())
    assert "No pass was observed" in Page((tmp_path / "out" / "site" / "passes.html").read_text("utf-8")).text


def test_wrong_folders_end_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    out = a_store(tmp_path / "out")
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        (["report", tmp_path / "none", "--out", tmp_path / "site"], "there is no folder"),
        (["report", tmp_path / "empty", "--out", tmp_path / "site"], "there is no campaign in"),
        (["report", out, "--out", tmp_path / "full"], "is not empty and holds no site"),
        (["report", "site", "--out", tmp_path / "site"], "at least one campaign"),
        (["report", out, "--support", tmp_path], "--support goes with --out"),
        (["report", tmp_path / "none"], "there is no folder"),
        (["serve", tmp_path / "none"], "does not exist"),
        (["serve", tmp_path / "empty", "--port", "0"], "there is no campaign in"),
    )
    for words, says in wrong:
        result = call(*words)
        assert result.exit_code == 2, words
        assert (result.stdout, result.stderr.count("\n")) == ("", 1)
        assert says in result.stderr
    assert not (tmp_path / "site").exists()


def test_folders_of_one_name_get_labels_of_their_own() -> None:
    paths = [Path("/a/out"), Path("/b/out"), Path("/c/out-2"), Path("/d/\u00e4")]
    assert labels(paths) == ["out", "out-2", "out-2-2", "campaign"]


def test_a_reader_reads_again_what_has_changed(tmp_path: Path) -> None:
    out, reader = a_store(tmp_path / "out"), Reader()
    first = reader.finding(out, "wrong-0000000001")
    assert reader.finding(out, "wrong-0000000001") is first
    file = out / "findings" / "wrong-0000000001" / "finding.json"
    os.utime(file, ns=(1, 1))
    assert reader.finding(out, "wrong-0000000001") is not first


def test_pages_of_findings_that_are_gone_are_removed(tmp_path: Path) -> None:
    out, site = a_store(tmp_path / "out"), tmp_path / "site"
    write_site([out], site)
    (site / "out" / "wrong-9999999999.html").touch()
    write_site([out], site)
    assert not (site / "out" / "wrong-9999999999.html").exists()
