"""The process of the validity check: `python -m miscompile.triage.validity_child FOLDER BYTES`.

Runs FOLDER/model.onnx on FOLDER/feeds.npz with onnx's reference evaluator, in BYTES of memory, and prints one JSON
object: `results` ([dtype, shape] for each output of each feed), `refused` or `silent` (why).
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_local_functions

from miscompile.base.child import limit_memory
from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, numpy_name
from miscompile.findings.encode import tensor_from
from miscompile.ops.definitions.evaluator import evaluator

_UNKNOWN = ("not implemented", "No implementation for", "has no attribute", "Unable to find")


def run(folder: Path) -> dict[str, Any]:
    """Return the answer for the case that lies in `folder`."""
    notes = json.loads((folder / "notes.json").read_text("utf-8"))
    model = onnx.load(folder / "model.onnx")
    with np.load(folder / "feeds.npz", allow_pickle=False) as arrays:
        feeds = [
            {
                name: _native(dtype, tensor_from(dtype, tuple(shape), arrays[f"{row}_{place}"]).array)
                for place, (name, (dtype, shape)) in enumerate(zip(notes["names"], feed, strict=True))
            }
            for row, feed in enumerate(notes["feeds"])
        ]
    answer = _evaluated(model, notes["outputs"], feeds)
    if "silent" in answer and model.functions:
        # The evaluator knows only those functions inside a function that precede it, and in none a body that calls one.
        answer = _evaluated(inline_local_functions(model), notes["outputs"], feeds)
    return answer


def _evaluated(model: onnx.ModelProto, outputs: list[str], feeds: list[dict[str, Array]]) -> dict[str, Any]:
    try:
        made = evaluator(model)
        results = [made.run(outputs, feed) for feed in feeds]
    except MemoryError:
        return {"silent": "not enough memory"}
    except NotImplementedError as error:
        return {"silent": _line(error)}
    except Exception as error:  # noqa: BLE001 - whatever the evaluator raises is its answer
        line = _line(error)
        return {"silent" if any(word in line for word in _UNKNOWN) else "refused": line}
    return {"results": [[_type(value) for value in row] for row in results]}


def _native(dtype: str, array: Array) -> Array:
    """Return the array as the evaluator wants it: foreign float types by the extension types of numpy."""
    wanted = onnx.helper.tensor_dtype_to_np_dtype(DTYPES[dtype].code)
    return array if dtype == "string" or array.dtype == wanted else array.view(wanted)


def _type(value: Any) -> tuple[str, list[int]]:  # noqa: ANN401 - whatever the evaluator returns
    array = np.asarray(value)
    return numpy_name(array.dtype), list(array.shape)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def main() -> int:
    """Write the answer to standard output; output of the evaluator goes to standard error."""
    folder, memory = Path(sys.argv[1]), int(sys.argv[2])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    limit_memory(memory)
    warnings.simplefilter("ignore")
    out.write(json.dumps(run(folder)))
    out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
