"""A finding of a campaign, as the caller of the API sees it: its row, and its folder when more is asked."""

import os
from dataclasses import dataclass
from pathlib import Path

import onnx

from miscompile.api.models import arrays_of
from miscompile.base.errors import UsageError
from miscompile.core.case import Case
from miscompile.core.tensor import Array
from miscompile.findings import folder
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.store import Record, Store, record_of


@dataclass(frozen=True, slots=True)
class CampaignFinding:
    """A finding in the folder `out` of a campaign.

    `status` is `confirmed` (reduced, and a fresh process showed it), `pending` (still to be examined, see
    `miscompile.reduce`), `known` or `fixed` (by the compiler's list of known bugs or by the ledger) or `unconfirmed`
    (it did not show again). `kind` is `wrong`, `missing`, `shape`, `dtype`, `exception`, `death`, `hang`, `memory` or
    `accepted`. `culprits` are the passes that must be on, `nodes` counts the operators of the model (0: unknown), and
    `seen` the violations with this signature.

    The properties read the folder anew. They raise StoreError when it is absent or damaged.
    """

    out: Path
    identifier: str
    status: FindingStatus
    kind: str
    signature: str
    message: str
    culprits: tuple[str, ...]
    nodes: int
    seen: int

    @property
    def folder(self) -> Path:
        """The folder of the finding, with `model.onnx`, `feeds.npz`, `repro.py` and `issue.md`."""
        return folder.place(self.out, self.identifier)

    @property
    def model(self) -> onnx.ModelProto:
        """The model: the reduced one, once it is reduced. Raises UsageError for a program that is no ONNX model."""
        return onnx_of(self._stored().finding.case)

    @property
    def inputs(self) -> dict[str, Array]:
        """The inputs by name that show it, as arrays of numpy or `ml_dtypes`; the first ones, if there are several."""
        return inputs_of(self._stored().finding.case)

    @property
    def script(self) -> str:
        """The text of the standalone script, which needs the compiler only; empty while the finding is pending."""
        return self._stored().script

    @property
    def issue(self) -> str:
        """The issue text as markdown; empty until the campaign has written it."""
        return self._stored().issue

    def _stored(self) -> Stored:
        return folder.load(self.out, self.identifier)


def finding_of(out: Path, record: Record) -> CampaignFinding:
    """Return the finding of a row of the store in `out`."""
    return CampaignFinding(
        out, record.identifier, record.status, record.kind, record.signature, record.message, record.culprits,
        record.nodes, record.duplicates + 1,
    )  # fmt: skip


def load_finding(out: "str | os.PathLike[str]", identifier: str) -> CampaignFinding:
    """Return the finding called `identifier` in the folder `out`. Raises StoreError when there is none."""
    return finding_of(Path(out), one_record(Path(out), identifier))


def one_record(out: Path, identifier: str) -> Record:
    """Return a finding's row. Raises StoreError when `out` holds no campaign or no such finding, or it is damaged."""
    with Store.open(out, create=False) as store:
        stored = store.load(identifier)
        rows = {record.identifier: record for record in store.findings()}
    return rows.get(identifier) or record_of(stored)


def onnx_of(case: Case) -> onnx.ModelProto:
    """Return the model of a case. Raises UsageError when its program is an operator of a library instead."""
    if case.program.kind != "onnx":
        raise UsageError(f"the program is of kind '{case.program.kind}', not an ONNX model")
    return onnx.load_model_from_string(case.program.payload)


def inputs_of(case: Case) -> dict[str, Array]:
    """Return the first inputs of a case by name; empty for a program without inputs."""
    feed = case.feeds[0] if case.feeds else ()
    return arrays_of({port.name: value for port, value in zip(case.program.inputs, feed, strict=True)})
