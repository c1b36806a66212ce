"""The catalogue on ONNX Runtime: the shipped table equals observations made here, which include the rare passes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.oatest.verify import TRIES, main, opsets_of, programs, verify
from miscompile.base.rng import stream
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.execution.pool import LocalPool
from miscompile.patterns.language import Motif
from miscompile.patterns.shipped import catalogue
from miscompile.patterns.triggers import parse_triggers, shipped
from miscompile.targets.registry import about, versions

pytestmark = [pytest.mark.compiler, pytest.mark.process]

MOTIFS = {motif.name: motif for motif in catalogue()}

HARD = [
    ("attention_packed", "AttentionFusion"),
    ("bias_skip_layer_norm_cast", "BiasSkipLayerNormFusion"),
    ("cast_before_shape", "PreShapeNodeElimination"),
    ("clip_quantize", "ClipQuantRewrite"),
    ("conv_of_operands_add_relu", "ConvAddActivationFusion"),
    ("dq_q", "QDQFinalCleanupTransformer"),
    ("gelu_tanh_next", "FastGeluFusion"),
    ("qdq_conv", "NhwcTransformer"),
    ("qdq_conv_float_bias", "WeightBiasQuantization"),
    ("qdq_int8_zero_point", "QDQS8ToU8Transformer"),
    ("qdq_pair_twice_zero_point", "DoubleQDQPairsRemover"),
    ("qdq_where_constant", "WhereDummyDq"),
    ("relu_quantize", "ReluQuantRewrite"),
    ("unsqueeze_constant", "UnsqueezeElimination"),
]
"""Passes that ask for more than a chain of operators: an opset, a zero point, operands that are no constants."""

BEHIND = [
    ("embed_attention", "EmbedLayerNormFusion", "MatMulAddFusion"),
    ("dq_blocked_matmul_add", "MatMulNBitsFusion", "MatMulAddFusion"),
]

_LOG = """
import sys, onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 0
onnxruntime.InferenceSession(sys.stdin.buffer.read(), options, providers=["CPUExecutionProvider"])
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("onnxruntime") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize(("motif", "name"), HARD)
def test_a_hard_pass_is_woken(motif: str, name: str, pool: LocalPool) -> None:
    assert name in _seen(MOTIFS[motif], pool)


@pytest.mark.parametrize(("motif", "name", "sibling"), BEHIND)
def test_a_pass_behind_another_is_woken_when_that_is_off(motif: str, name: str, sibling: str, pool: LocalPool) -> None:
    table = verify([MOTIFS[motif]], "onnxruntime", pool, "any", 1, siblings=(sibling,))
    assert (name, (sibling,)) in table.behind[motif]


def test_the_table_that_ships_is_what_is_seen_here(pool: LocalPool) -> None:
    table = shipped("onnxruntime")
    assert table is not None
    if versions(about("onnxruntime"))["onnxruntime"] != table.version:
        pytest.skip("the table is of another release")
    names = stream(0, "table", "onnxruntime").sample(sorted(table.seen), 8)
    found = verify([MOTIFS[name] for name in names], "onnxruntime", pool, table.version)
    assert found.seen == {name: table.seen[name] for name in names}


@pytest.mark.slow
def test_a_table_can_be_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.oatest.verify.catalogue", lambda: (MOTIFS["relu_clip"],))
    main(["onnxruntime", str(tmp_path / "found.json"), "--siblings"])
    table = parse_triggers((tmp_path / "found.json").read_text("utf-8"), "found.json")
    assert table.version == versions(about("onnxruntime"))["onnxruntime"]
    assert table.seen == {"relu_clip": ("FuseReluClip",)}


@pytest.mark.parametrize(("motif", "names"), [
    ("qdq_shared_dequantize", {"EnsureUniqueDQForNodeUnit"}),
    ("rms_norm_cast", {"CastFloat16Transformer", "RemoveDuplicateCastTransformer"}),
])  # fmt: skip
def test_transformers_that_always_run_are_woken_too(motif: str, names: set[str]) -> None:
    seen: set[str] = set()
    for cases in programs(MOTIFS[motif], (17,), 1).values():
        log = _log(cases[0].program.payload)
        seen.update(name for name in names if f"GraphTransformer {name} modified: 1" in log)
    assert seen == names


def test_what_the_quantised_motifs_compute_does_not_depend_on_the_level(pool: LocalPool) -> None:
    for name in ("qdq_conv", "qdq_conv_float_bias", "qdq_where_constant", "qdq_pair_twice_zero_point", "dq_q"):
        cases = [case for group in programs(MOTIFS[name], (13, 17), 2).values() for case in group]
        plain, full = (
            pool.run([Run(case, "onnxruntime", Build(level)) for case in cases]) for level in ("off", "full")
        )
        for one, other in zip(plain, full, strict=True):
            assert isinstance(one, Values)
            assert isinstance(other, Values)
            assert _bytes(one) == _bytes(other), name


def _seen(motif: Motif, pool: LocalPool) -> frozenset[str]:
    table = verify([motif], "onnxruntime", pool, "any", TRIES, opsets=opsets_of("onnxruntime")[:4])
    return frozenset(table.seen.get(motif.name, ()))


def _bytes(outcome: Values) -> list[bytes]:
    return [value.array.tobytes() for feed in outcome.results for value in feed if value is not None]


def _log(payload: bytes) -> str:
    done = subprocess.run([sys.executable, "-c", _LOG], input=payload, capture_output=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()
