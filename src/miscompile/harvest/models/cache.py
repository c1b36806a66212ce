"""The corpus on disk: `<user cache>/miscompile/corpus/<digest of the name>`.

Each model has a folder with its file, its slices and its record (`model.json`). The record is written last and removed
first, so a folder without one is left over from an interruption and does not count.
"""

import fnmatch
import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from platformdirs import user_cache_path

from miscompile.base.digest import digest_bytes
from miscompile.base.errors import StoreError, UsageError, write_error
from miscompile.core.events import ProgressListener
from miscompile.graph.read import load
from miscompile.harvest.models.entry import CorpusModel
from miscompile.ops.seed import Seed, SeedOrigin
from miscompile.producers.slices.collection import Collection, keep, kept
from miscompile.producers.slices.slices import SliceLimits

RECORD, MODEL, SLICES = "model.json", "model.onnx", "slices"

FORMAT = 2
"""Version of the records and slices; older ones are made anew by `corpus add`."""

MOST = 600
"""Slices of the corpus in one campaign, drawn with the campaign's seed: every lane replays each at its start."""


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model of the corpus with its folder."""

    model: CorpusModel
    folder: Path

    @property
    def file(self) -> Path:
        """The ONNX file."""
        return self.folder / MODEL


def corpus_folder() -> Path:
    """Return the folder of the corpus; it need not exist."""
    return user_cache_path("miscompile") / "corpus"


def place_of(name: str) -> Path:
    """Return the folder of the model called `name`."""
    return corpus_folder() / digest_bytes(name.encode())


def models() -> list[StoredModel]:
    """Return all models of the corpus, sorted by name; damaged records are left out, `corpus add` replaces them."""
    found = (_read(path.parent) for path in corpus_folder().glob(f"*/{RECORD}"))
    return sorted((one for one in found if one is not None), key=lambda one: one.model.name)


def find(name: str) -> StoredModel | None:
    """Return the model called `name`, None when the corpus has none."""
    return _read(place_of(name))


def chosen(words: Sequence[str], *, required: bool = True) -> list[StoredModel]:
    """Return the models with slices that `words` name: names, packages, or patterns of names such as `onnx/*light*`.

    Raises UsageError for a word that names none, if it is `required`.
    """
    everything = [one for one in models() if one.model.slices]
    found: dict[str, StoredModel] = {}
    for word in words:
        some = [one for one in everything if one.model.package == word or fnmatch.fnmatch(one.model.name, word)]
        if not some and required:
            raise UsageError(f"--corpus: no model with slices is called {word}; `miscompile corpus list` has the names")
        found.update((one.model.name, one) for one in some)
    return list(found.values())


def stored_slices(path: Path, cut: SliceLimits) -> Collection | None:
    """Return the slices of the file at `path` if the corpus has them; None if not, or if `cut` asks for others."""
    if cut != SliceLimits():
        return None
    try:
        digest = digest_bytes(path.read_bytes())
        there = next((one for one in models() if one.model.digest == digest and one.model.slices), None)
        return None if there is None else kept(there.folder / SLICES)
    except (OSError, StoreError):
        return None  # the model is then cut as if it were not in the corpus


def write(model: CorpusModel, data: bytes, slices: Collection | None) -> None:
    """Store a model with its file and slices, in place of an older one. Raises StoreError when it cannot be written."""
    folder = place_of(model.name)
    try:
        (folder / RECORD).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if data:
            (folder / MODEL).write_bytes(data)
        if slices is not None:
            keep(slices, folder / SLICES)
        unready = folder / f"{RECORD}.part"
        unready.write_text(json.dumps({"format": FORMAT, **model.as_json()}, indent=1), "utf-8")
        os.replace(unready, folder / RECORD)
    except OSError as error:
        raise write_error(f"a model of the corpus to {folder}", error) from None


def seeds_of_corpus(
    names: Iterable[str], cut: SliceLimits, seed: int, on_progress: ProgressListener | None = None
) -> Collection:
    """Return at most `MOST` slices of the models called `names`, evenly from all of them.

    Slices of other sizes than the stored ones are cut anew. Models that have left the corpus are named among the
    skipped. Raises UsageError when none is left.
    """
    found: list[list[Seed]] = []
    skipped: list[str] = []
    rng = random.Random(seed)
    for name in names:
        one = find(name)
        try:
            pieces = [] if one is None else list(_slices(one, cut, on_progress))
        except StoreError as error:
            pieces, one = [], None
            skipped.append(f"{name} is skipped: {error}; run `miscompile corpus add` again")
        if one is None:
            skipped.append(f"{name} is skipped: it is no longer in the corpus")
        rng.shuffle(pieces)
        found.append(pieces)
    seeds = _round_robin(found)
    if not seeds:
        raise UsageError(f"the corpus gives no slices: {'; '.join(skipped) or 'no model was named'}")
    return Collection(tuple(seeds), sum(1 for pieces in found if pieces), tuple(skipped))


def _slices(one: StoredModel, cut: SliceLimits, on_progress: ProgressListener | None) -> Iterator[Seed]:
    if cut == SliceLimits():
        pieces: Sequence[Seed] = kept(one.folder / SLICES).seeds
    else:
        from miscompile.harvest.models.cutting import slices_of_model  # imports triage, which few campaigns need here

        if on_progress is not None:
            on_progress(f"cutting {one.model.name} into slices")
        pieces = slices_of_model(load(one.file), one.model.name, cut).seeds
    return (replace(piece, origin=_origin(piece, one.model), corpus=True) for piece in pieces)


def _origin(piece: Seed, model: CorpusModel) -> SeedOrigin:
    nodes = () if piece.origin is None else piece.origin.nodes
    return SeedOrigin(model.name, nodes, model.title)


def _round_robin(groups: Sequence[Sequence[Seed]]) -> list[Seed]:
    found: list[Seed] = []
    for place in range(max(map(len, groups), default=0)):
        found += [group[place] for group in groups if place < len(group)]
    return found[:MOST]


def _read(folder: Path) -> StoredModel | None:
    try:
        data = json.loads((folder / RECORD).read_text("utf-8"))
        if data.pop("format") != FORMAT:
            return None
        return StoredModel(CorpusModel(**data), folder)
    except (OSError, ValueError, KeyError, TypeError):
        return None
