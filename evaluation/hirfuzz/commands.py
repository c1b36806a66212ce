"""The tables of HIRFUZZ on the command line."""

from pathlib import Path
from typing import Any

import click

from evaluation.measuring import chosen, measured
from evaluation.options import JSON, LIMIT_SECONDS, PATIENCE, SEED, TARGETS, WORKERS, count, with_options


@click.command("hirfuzz-diversity", short_help="HIRFUZZ, section 5.5, figure 6: diversity with and without guidance.")
@with_options(
    count("--graphs", 200, "Graphs of a repetition."),
    count("--nodes", 100, "Operators of a graph.", most=1000),
    count("--repetitions", 10, "Repetitions."),
    SEED, WORKERS, JSON,
)  # fmt: skip
def diversity(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Count the operators, dtypes, shapes and edges that graphs cover with and without guidance; runs no compiler.

    \b
    Example:
      python -m evaluation hirfuzz-diversity --repetitions 3
    """
    return _measured("diversity", out, given)


@click.command("hirfuzz-invalid", short_help="HIRFUZZ, section 5.4, figure 7: invalid programs.")
@with_options(
    TARGETS, count("--programs", 170, "Invalid programs for each target."), LIMIT_SECONDS, SEED, WORKERS, JSON
)
def invalid(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Break one constraint of a single operator: what dies, hangs, is accepted or refused.

    \b
    Example:
      python -m evaluation hirfuzz-invalid --targets onnxruntime,openvino,tvm --seed 1 --json figures.json

    `miscompile fuzz --preset hirfuzz` keeps findings; this table counts them alone.
    """
    return _measured("invalid", out, given)


@click.command("hirfuzz-failures", short_help="HIRFUZZ, section 5.5: failures with and without guidance.")
@with_options(
    TARGETS,
    count("--tests", 1000, "Tests for each target and guidance."),
    count("--test-nodes", 10, "Operators of a test.", most=1000),
    PATIENCE, LIMIT_SECONDS, SEED, WORKERS, JSON,
)  # fmt: skip
def failures(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Count failing tests and different failures with and without guidance.

    \b
    Example:
      python -m evaluation hirfuzz-failures --targets toy --tests 200

    `miscompile fuzz --preset hirfuzz` keeps findings; this table counts them alone.
    """
    return _measured("failures", out, given)


def _measured(part: str, out: Path | None, given: dict[str, Any]) -> int:
    from evaluation.hirfuzz.experiments import HirfuzzSettings, run
    from evaluation.hirfuzz.view import hirfuzz_view

    settings = HirfuzzSettings(part, **chosen(given))  # type: ignore[arg-type]
    return measured(f"hirfuzz-{part}", settings.seed, out, lambda watch: run(settings, watch), hirfuzz_view)
