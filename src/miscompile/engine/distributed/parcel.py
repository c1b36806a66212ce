"""A finding on its way between machines: the files of its folder as one JSON value."""

import base64
import binascii
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from miscompile.base.errors import StoreError
from miscompile.findings import folder
from miscompile.findings.folder import Stored

Parcel = Mapping[str, str]
"""The files of a finding by name; their bytes in base64."""


def pack(stored: Stored) -> Parcel:
    """Return a finding with everything that its folder holds."""
    return {name: base64.b64encode(data).decode("ascii") for name, data in folder.files_of(stored).items()}


def pack_known(stored: Stored) -> Parcel:
    """Return only the contents by which a campaign recognises a finding that it need not triage again."""
    return pack(replace(stored, original=None, script="", issue=""))


def unpack(parcel: Parcel, identifier: str) -> Stored:
    """Return the finding in a parcel. Raises StoreError when the parcel is damaged or holds another finding."""
    with tempfile.TemporaryDirectory(prefix="miscompile-parcel-") as place:
        target = folder.place(Path(place), identifier)
        target.mkdir(parents=True)
        try:
            for name, data in parcel.items():
                (target / Path(name).name).write_bytes(base64.b64decode(data, validate=True))
        except (binascii.Error, OSError, ValueError) as error:
            raise StoreError(f"finding {identifier} arrived damaged: {error}") from None
        stored = folder.load(Path(place), identifier)
    if stored.finding.identifier != identifier:
        raise StoreError(f"finding {identifier} arrived as {stored.finding.identifier}")
    return stored
