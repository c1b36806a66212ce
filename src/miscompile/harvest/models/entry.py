"""One model of the corpus, as its record and its row in a table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

ModelOrigin = Literal["package", "path", "architecture"]


@dataclass(frozen=True, slots=True)
class CorpusModel:
    """A model of the corpus.

    `name` is unique in the corpus, such as `silero-vad/data/silero_vad.onnx`; `package` and `version` are those of the
    distribution that it ships in, or of the library that makes the architecture (empty for a file of the user). `form`
    is the file format, `size` the bytes of the file, `digest` that of these bytes. `nodes` counts the operators, those
    in bodies too, `operators` counts them by type, `opset` is the version of the standard operator set. `slices` is the
    number of slices for campaigns, `reason` says why there are none, or what is left out (empty: nothing is). `whole`
    tells whether `miscompile check` takes the model.
    """

    name: str
    origin: ModelOrigin
    package: str
    version: str
    source: str
    form: str
    size: int
    digest: str
    nodes: int = 0
    operators: Mapping[str, int] = field(default_factory=dict)
    opset: int = 0
    slices: int = 0
    whole: bool = False
    reason: str = ""

    @property
    def title(self) -> str:
        """The package with its version; empty for a file of the user."""
        return f"{self.package} {self.version}".strip()

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**asdict(self), "operators": dict(self.operators)}
