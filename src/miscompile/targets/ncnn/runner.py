"""Networks in ncnn's format from symbolic tensors, and their execution; standalone scripts contain the functions that
they need."""

from collections.abc import Collection, Sequence
from typing import Any

import ncnn
import numpy as np
from numpy.typing import NDArray

from miscompile.targets.ncnn.names import LIGHT, PACKING, PASSES, SGEMM
from miscompile.targets.ncnn.tensors import NcnnBlob, NcnnCall, NcnnValue, as_blob, axes_of

MAGIC = 7767517
"""The first line of a file of parameters."""

TAGGED = 0
"""The kind of weights that stand after a tag, four zeros for float32."""

FUSING = ("Convolution", "Deconvolution", "InnerProduct")
"""How the names of layers begin that have an activation as a parameter."""


def network_of(inputs: Sequence[NcnnValue], outputs: Sequence[NcnnValue], fused: bool) -> tuple[str, bytes]:
    """Return the text of parameters and the weights of the network that computes `outputs` from `inputs`.

    With `fused` an activation whose only operand is the result of a convolution becomes a parameter of it.
    """
    ends = [as_blob(value, value.blob.sizes) for value in outputs]
    calls, blobs = list[NcnnCall](), [value.blob for value in inputs]
    for blob in ends:
        collect_calls(blob, calls, blobs)
    if fused:
        calls, ends = fuse_activations(calls, ends)
    uses = [blob for call in calls for blob in call.operands] + ends
    lines, weights = list[str](), list[bytes]()
    names = dict[int, list[str]]()
    for blob in blobs:
        made = name_uses(blob, uses, names)
        head = f"MemoryData m{len(lines)}" if blob.array is not None else f"Input {made}"
        pairs = {**axes_of(blob.sizes), **({21: 1} if blob.array is not None else {})}
        lines.append(f"{head} 0 1 {made} {words_of(pairs)}")
        weights += [] if blob.array is None else [np.ascontiguousarray(blob.array, "float32").tobytes()]
        lines += split_of(made, names[id(blob)])
    for call in calls:
        operands = [names[id(blob)].pop() for blob in call.operands]
        made_all = [name_uses(blob, uses, names) for blob in call.results]
        words = [call.layer, f"n{len(lines)}", str(len(operands)), str(len(made_all)), *operands, *made_all]
        lines.append(" ".join([*words, words_of(call.params)]))
        weights += [bytes(4 if kind == TAGGED else 0) + array.tobytes() for array, kind in call.weights]
        for blob, made in zip(call.results, made_all, strict=True):
            lines += split_of(made, names[id(blob)])
    for place, blob in enumerate(ends):
        lines.append(f"Noop e{place} 1 1 {names[id(blob)].pop()} out{place}")
    count = sum(int(line.split()[3]) for line in lines)
    return "\n".join([str(MAGIC), f"{len(lines)} {count}", *lines, ""]), b"".join(weights)


def collect_calls(blob: NcnnBlob, calls: list[NcnnCall], blobs: list[NcnnBlob]) -> None:
    """Append the calls that compute `blob` after those of their operands; append constants to `blobs`."""
    if blob.array is not None and not any(blob is other for other in blobs):
        blobs.append(blob)
    if blob.call is not None and blob.call not in calls:
        for operand in blob.call.operands:
            collect_calls(operand, calls, blobs)
        calls.append(blob.call)


def fuse_activations(calls: Sequence[NcnnCall], ends: Sequence[NcnnBlob]) -> tuple[list[NcnnCall], list[NcnnBlob]]:
    """Return calls in which activations are parameters of the layers before them."""
    uses = [id(blob) for call in calls for blob in call.operands] + [id(blob) for blob in ends]
    made, renamed = list[NcnnCall](), dict[int, NcnnBlob]()
    for call in calls:
        operands = [renamed.get(id(blob), blob) for blob in call.operands]
        before = operands[0].call if operands else None
        activation = activation_of(call)
        alone = before is not None and uses.count(id(call.operands[0])) == 1
        if activation and alone and before in made and before.layer.startswith(FUSING) and 9 not in before.params:
            before.params |= activation
            renamed[id(call.results[0])] = operands[0]
        else:
            made.append(NcnnCall(call.layer, operands, dict(call.params), call.weights))
            made[-1].results = [NcnnBlob(blob.sizes, None, made[-1]) for blob in call.results]
            renamed |= {id(old): new for old, new in zip(call.results, made[-1].results, strict=True)}
    return made, [renamed.get(id(blob), blob) for blob in ends]


def activation_of(call: NcnnCall) -> dict[int, Any]:
    """Return the parameters by which another layer applies this activation; none if it is no such activation."""
    params = call.params
    if call.layer == "ReLU":
        return {9: 2, 10: [params[0]]} if params.get(0) else {9: 1}
    if call.layer == "Clip":
        return {9: 3, 10: [params[0], params[1]]}
    if call.layer == "HardSwish":
        return {9: 6, 10: [params[0], params[1]]}
    return {"Sigmoid": {9: 4}, "Mish": {9: 5}}.get(call.layer, {})


def name_uses(blob: NcnnBlob, uses: Sequence[NcnnBlob], names: dict[int, list[str]]) -> str:
    """Return the name of a new blob; enter into `names` the one that each of its readers takes."""
    stem, count = f"b{len(names)}", sum(blob is other for other in uses)
    names[id(blob)] = [stem] if count == 1 else [f"{stem}_{place}" for place in range(count)]
    return stem


def split_of(made: str, taken: Sequence[str]) -> list[str]:
    """Return the layer that copies a blob for its readers, since a blob has one."""
    if len(taken) < 2:
        return []
    return [f"Split s{made} 1 {len(taken)} {made} {' '.join(taken)}"]


def words_of(params: dict[int, Any]) -> str:
    """Return parameters as text; arrays have other numbers than single values."""
    words = []
    for key, value in params.items():
        if isinstance(value, list | tuple):
            words.append(f"{-23300 - key}={','.join([str(len(value)), *map(word_of, value)])}")
        else:
            words.append(f"{key}={word_of(value)}")
    return " ".join(words)


def word_of(value: Any) -> str:  # noqa: ANN401 - an integer or a float
    """Return a number in at most 15 characters, more of which ncnn does not read.

    Raises NotImplementedError for one that is not finite, which ncnn does not read either.
    """
    if not np.isfinite(value):
        raise NotImplementedError("a parameter that is not finite has no lowering")
    return f"{value:.8e}" if isinstance(value, float) else str(int(value))


def start(parameters: str, weights: bytes, level: str, off: Collection[str] = ()) -> Any:  # noqa: ANN401 - a network
    """Load a network without what is `off`; on level `off`, without anything that can be switched off.

    Raises RuntimeError when ncnn refuses it.
    """
    off = PASSES if level == "off" else off
    net = ncnn.Net()
    full_precision(net.opt)
    no_winograd(net.opt)
    net.opt.num_threads = 1
    net.opt.use_packing_layout = PACKING not in off
    net.opt.use_sgemm_convolution = SGEMM not in off
    net.opt.lightmode = LIGHT not in off
    if net.load_param_mem(parameters):
        raise RuntimeError("ncnn refuses the parameters")
    net.load_model_mem(weights)
    return net


def full_precision(options: Any) -> None:  # noqa: ANN401 - of ncnn
    """Compute in float32, where the default is float16 or bfloat16 on some processors."""
    for name in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_packed", "bf16_storage"):
        setattr(options, f"use_{name}", False)


def no_winograd(options: Any) -> None:  # noqa: ANN401 - of ncnn
    """Convolve without Winograd's algorithm, which by design rounds more than a sum of products."""
    options.use_winograd_convolution = False


def run_arrays(
    net: Any,  # noqa: ANN401
    inputs: Sequence[NcnnValue],
    outputs: Sequence[NcnnValue],
    arrays: Sequence[NDArray[Any]],
) -> list[NDArray[Any]]:
    """Run on arrays in the order of the inputs; return the outputs. Raises RuntimeError when a layer fails."""
    extractor = net.create_extractor()
    for place, (value, array) in enumerate(zip(inputs, arrays, strict=True)):
        # ncnn reads channels at aligned addresses, which a clone has and an array lacks.
        extractor.input(f"b{place}", ncnn.Mat(np.ascontiguousarray(array).reshape(value.blob.sizes)).clone())
    found = []
    for place, value in enumerate(outputs):
        failed, blob = extractor.extract(f"out{place}")
        if failed:
            raise RuntimeError(f"ncnn fails to compute output {place}: {failed}")
        array = np.array(blob)
        if array.shape != tuple(value.blob.sizes):
            raise RuntimeError(f"output {place} has the sizes {array.shape} instead of {value.blob.sizes}")
        found.append(array.reshape(value.shape).copy())
    return found
