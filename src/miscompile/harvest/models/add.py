"""Adding models to the corpus: packages, paths and architectures, each read, described, cut into slices and stored."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.base.digest import digest_bytes
from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import MiscompileError, ModelError, UsageError
from miscompile.core.events import ProgressListener
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, TensorType
from miscompile.graph.read import load, mended, read
from miscompile.harvest.models import cache
from miscompile.harvest.models.architectures import LIBRARIES, exported
from miscompile.harvest.models.candidates import ONNX, Candidate, at_path, in_package
from miscompile.harvest.models.cutting import slices_of_model
from miscompile.harvest.models.entry import CorpusModel
from miscompile.producers.slices.collection import Collection
from miscompile.producers.slices.slices import SliceLimits


def add(words: Sequence[str], on_progress: ProgressListener, seconds: float = 60.0) -> list[CorpusModel]:
    """Add what `words` name, and return the models; `seconds` limits the observation of each model.

    A model that is in the corpus with the same bytes is not read again. Raises UsageError for a word that names
    nothing, before anything is added, and StoreError when the cache cannot be written.
    """
    with TemporaryDirectory(prefix="miscompile-corpus-") as scratch:
        found = [one for word in words for one in candidates(word, Path(scratch), on_progress)]
        known = {one.model.digest: one.model.name for one in cache.models() if one.model.slices}
        added = []
        for number, one in enumerate(found, 1):
            on_progress(f"{number}/{len(found)} {one.name}")
            added.append(_added(one, known, seconds))
    return added


def candidates(word: str, scratch: Path, on_progress: ProgressListener) -> list[Candidate]:
    """Return the model files that a word names: `timm:resnet18`, a path, or a package. Raises UsageError."""
    library, colon, name = word.partition(":")
    if colon and library in LIBRARIES:
        return [exported(library, name, scratch, on_progress)]
    if Path(word).exists() or "/" in word or word.startswith("."):
        return at_path(word)
    if colon:
        raise UsageError(f"there are no architectures of '{library}'; there are: {', '.join(LIBRARIES)}")
    return in_package(word)


def _added(one: Candidate, known: dict[str, str], seconds: float) -> CorpusModel:
    """Return the record of a model, from the corpus or after adding it; `known` has the names of models by digest."""
    try:
        data = one.path.read_bytes()
    except OSError as error:
        raise UsageError(f"{one.path} cannot be read: {error.strerror or error}") from None
    digest = digest_bytes(data)
    there = cache.find(one.name)
    if there is not None and (there.model.digest, there.model.version) == (digest, one.version):
        return there.model
    bare = _record(one, data, digest)
    if one.form != ONNX:
        listed = replace(bare, reason=f"{one.form}: only ONNX is read; convert it first")
        cache.write(listed, b"", None)
        return listed
    model, content, slices = _described(bare, one.path, data, known.get(digest, one.name), seconds)
    cache.write(model, content, slices)
    if model.slices:
        known[digest] = model.name
    return model


def _record(one: Candidate, data: bytes, digest: str) -> CorpusModel:
    return CorpusModel(one.name, one.origin, one.package, one.version, str(one.path), one.form, len(data), digest)


def _described(
    bare: CorpusModel, path: Path, data: bytes, first: str, seconds: float
) -> tuple[CorpusModel, bytes, Collection | None]:
    """Return the record with all that is in the model, the bytes to store, and the slices.

    `first` is the name of the model in the corpus that has the same bytes.
    """
    try:
        model, content = _loaded(path, data)
    except (MiscompileError, ValueError, MemoryError) as error:
        return replace(bare, reason=_told(error)), b"", None
    operators = Counter(_operators(model.graph))
    known = replace(bare, nodes=operators.total(), operators=dict(operators.most_common()), opset=model.opset)
    try:
        check(model)
    except ModelError as error:
        return replace(known, reason=f"breaks ONNX's rules: {_told(error)}"), content, None
    known = replace(known, whole=_is_plain(model))
    if first != bare.name:
        return replace(known, reason=f"the same file as {first}"), content, None
    try:
        slices = slices_of_model(model, bare.name, SliceLimits(), seconds=seconds)
    except (MiscompileError, ValueError, MemoryError) as error:
        return replace(known, reason=_told(error)), content, None
    reason = "" if slices.seeds else "; ".join(slices.notes) or "fewer than three operators on what is fed"
    return replace(known, slices=len(slices.seeds), reason=reason), content, slices


def _loaded(path: Path, data: bytes) -> tuple[Model, bytes]:
    """Return a model with the bytes of a file that needs no other files."""
    data = mended(data)
    try:
        return read(data), data
    except ModelError:
        model = load(path)  # with the tensors in other files
        return model, emit(model)


def _operators(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        yield node.op if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op}"
        for body in node.subgraphs():
            yield from _operators(body)


def _is_plain(model: Model) -> bool:
    """Tell whether all inputs and outputs are tensors that inputs can be drawn for."""
    infos = (*model.graph.inputs, *model.graph.outputs)
    return all(isinstance(info.type, TensorType) and info.type.dtype in PLAIN for info in infos)


def _told(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
