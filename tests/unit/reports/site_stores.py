"""Stores for the tests of the site: one with findings of every group, whose names are hostile."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from miscompile.core.arms import ArmYield
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.ledger import LEDGER, Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo

BRACES = "{{7*7}}{% raw %}<img src=x onerror=alert(2)>"
HOSTILE = f"a\"b'><script>alert(1)</script></style></title>\n{BRACES}\u202e--><!--`&amp;"
"""A name that ends tags, attributes, scripts and comments, holds a template, and turns the direction of text."""

ELEMENTS = [
    {"place": [0], "reference": "1.0", "faulty": "2.0", "allowed": 0.25, "wrong": True},
    {"place": [1], "reference": "0.5", "faulty": "0.5", "allowed": 0.25, "wrong": False},
]


def a_model(name: str = "") -> Model:
    """Return Relu(Add(x, x)), whose value names end with `name`."""
    kind = TensorType("float32", (2,))
    x, v, y = (ValueInfo(f"{one}{name}", kind) for one in "xvy")
    nodes = (Node("Add", (x.name, x.name), (v.name,), name=name), Node("Relu", (v.name,), (y.name,)))
    return Model(Graph("g", (x,), (y,), nodes), {"": 17})


def a_stored(
    identifier: str, status: FindingStatus = "confirmed", name: str = "", session: int = 1, test: int = 3
) -> Stored:
    """Return a finding of which every free text ends with `name`."""
    program = to_program(a_model(name))
    recipe = {"seed": 7, "arm": f"motifs/levels{name}", "check": f"levels{name}", "session": session}
    case = Case(program, ((tensor(np.array([1.0, -2.0], np.float32)),),), recipe)
    signature = Signature(f"toy{name}", "wrong", "", (f"Fuse{name}",), identifier)
    facts = {
        "test": test, "rule": "exact", "output": f"y{name}", "nodes": 2, "original_nodes": 9, "reproduced": True,
        "attribution": f"Seen{name}.", "found_as": name, "slip_of": "wrong-0000000002",
        "faulty": {"level": f"full{name}", "disabled": [f"P{name}"], "threads": 1, "device": "cpu"},
        "reference": {"level": "off", "disabled": [], "threads": 1, "device": "cpu"},
        "details": {"feed": 0, "output": 0, "elements": ELEMENTS, f"more{name}": name},
        "known": {"link": f"javascript:alert(3){name}", "note": f"note{name}"},
        "resisted": {"class": f"fusion{name}", "edges": [f"x{name}>v{name}: fusion (all) held by if"], "healing": []},
        "releases": {"distribution": f"toy{name}", "first_bad": "2.0", "last_good": "1.0",
                     "tried": [{"release": f"1.0{name}", "answer": "absent"},
                               {"release": f"2.0{name}", "answer": "shows"}]},
        "unconfirmed": name, "reduction": {"tries": 3, "complete": True},
    }  # fmt: skip
    finding = Finding(identifier, Property("levels", "toy", signature), case, f"y differs{name}", facts)
    texts = {"script": f"print(1)  # {name}\n", "issue": f"# Title{name}\n"}
    return Stored(finding, status, replace(case, recipe={}), {f"toy{name}": "1.0"}, **texts)


def a_store(out: Path, name: str = "", ending: str = "done") -> Path:
    """Write a store with a finding of each status, counters, arms, pass activity and a ledger; return its folder."""
    with Store.open(out) as store:
        store.begin(Campaign("toy", 7, {}, {f"toy{name}": "1.0"}, 0.0))
        store.note_session(store.begin_session(0.0), 60.0, ending)
        store.add_counters({"tests": 1200, "deaths": 1, "compiler_cpu_us": 5_000_000, "judge_us": 1_000_000})
        store.add_arms({f"motifs/levels{name}": ArmYield(10, 4_000_000, 2, 1, 1, 3), "everyday": ArmYield(5, 1, 0)})
        rows = [("programs", "toy", "", "", 9), ("fired", "toy", f"Fuse{name}", "", 5), ("fired", "toy", "Fold", "", 2)]
        rows += [("together", "toy", "Fold", f"Fuse{name}", 2), ("tried", "toy", f"Never{name}", "", 3)]
        store.add_pass_activity(rows)
        for number, status in enumerate(("confirmed", "pending", "unconfirmed", "known", "fixed", "non-default"), 1):
            store.add_pending(a_stored(f"wrong-{number:010}", status, name, test=number * 100))  # type: ignore[arg-type]
    with Ledger.open(out / LEDGER) as ledger:
        signature = Signature("toy", "wrong", "", (f"Fuse{name}",), "")
        ledger.put(LedgerEntry(signature, "reported", f"javascript:alert(4){name}", f"note{name}",
                               found="2026-01-31T12:00:00Z", changed="2026-01-31T12:00:00Z"))  # fmt: skip
    return out


class Page(HTMLParser):
    """The elements and texts of a page, as a browser reads them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._inside = tag if tag in self.raw else ""
        if self._inside:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        del tag
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.raw[self._inside][-1] += data
        else:
            self.text += data

    @property
    def links(self) -> list[str]:
        """The addresses of the page's links."""
        return [attributes["href"] for _, attributes in self.tags if "href" in attributes]

    @property
    def identifiers(self) -> list[str]:
        """The identifiers of its elements."""
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]
