"""The tables of OATest on the command line."""

from pathlib import Path
from typing import Any

import click

from evaluation.measuring import chosen, measured, measured_at_once
from evaluation.options import JSON, LIMIT_SECONDS, PATIENCE, SEED, TARGETS, WORKERS, count, with_options

_WATCHED = count("--watched", 1000, "Programs of a series on which the trigger rate is measured.")

_MUTATIONS = click.option(
    "--mutations", type=click.FloatRange(0, 1), default=0.3, show_default=True, metavar="SHARE",
    help="Share of patterns that are planted in an uncommon setting.",
)  # fmt: skip


@click.command("oatest-splicing", short_help="OATest, sections 3.2 and 4.4: validity and trigger rate of syntheses.")
@with_options(
    TARGETS, count("--syntheses", 5000, "Programs for each target."), _WATCHED, _MUTATIONS,
    LIMIT_SECONDS, SEED, WORKERS, JSON,
)  # fmt: skip
def splicing(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Count valid syntheses, patterns that are really inside their seeds, and how often their passes fire.

    \b
    Example:
      python -m evaluation oatest-splicing --targets onnxruntime,tvm --syntheses 500
    """
    return _measured("splicing", out, given)


@click.command("oatest-ablation", short_help="OATest, section 4.4: other patterns, other seeds.")
@with_options(
    TARGETS,
    count("--tests", 1000, "Tests for each target and setting."),
    count("--programs", 300, "Generated programs to cut patterns from, besides onnx's node cases.", least=0),
    count("--cases", None, "How many of onnx's node cases, drawn at random. [default: all]", least=0),
    count("--each", 3, "Patterns for each pass that fires."),
    click.option("--pairs", type=click.Path(exists=True), metavar="PATH",
                 help="Cut patterns from what `miscompile harvest --keep PATH` left there instead."),
    _WATCHED, _MUTATIONS, PATIENCE, LIMIT_SECONDS, SEED, WORKERS, JSON,
)  # fmt: skip
def ablation(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Count bugs and combinations of passes with patterns that are cut otherwise, or random; with other seeds, or none.

    \b
    Example:
      python -m evaluation oatest-ablation --tests 200 --pairs kept-by-harvest

    `miscompile fuzz --preset oatest` keeps findings; this table counts them alone.
    """
    return _measured("ablation", out, given)


def _measured(part: str, out: Path | None, given: dict[str, Any]) -> int:
    from evaluation.oatest.experiments import OatestSettings, run
    from evaluation.oatest.view import oatest_view

    settings = OatestSettings(part, **chosen(given))  # type: ignore[arg-type]
    return measured(f"oatest-{part}", settings.seed, out, lambda watch: run(settings, watch), oatest_view)


@click.command("oatest-relax", short_help="OATest, sections 3.2 and 4.4 for TVM: patterns inside Relax programs.")
@click.argument("library", type=click.Path(path_type=Path))
@with_options(
    count("--syntheses", 5000, "Programs."),
    count("--seeds", 100, "Programs into which patterns go."),
    count("--watched", 300, "Syntheses of each sample on which passes run alone."),
    count("--built", 100, "Syntheses of each sample that are built and run."),
    click.option("--disabled", metavar="NAMES", help="Passes that stay off in builds, joined with commas."
                 " [default: two that fail on four in ten seeds without any pattern]"),
    click.option("--seed", type=click.IntRange(0), default=11, show_default=True, metavar="N",
                 help="Seed of every random choice."),
    JSON,
)  # fmt: skip
def relax(library: Path, disabled: str | None, out: Path | None, **given: Any) -> int:  # noqa: ANN401
    """Splice patterns of LIBRARY, as `miscompile harvest tvm` makes it, into Relax programs.

    Each synthesis is held against its own claims: whether TVM calls it well-formed, and which edges between seed and
    pattern the module has. On samples, whether the intended pass changes the program alone, and in a whole build.

    \b
    Example:
      python -m evaluation oatest-relax relax-patterns --syntheses 500 --json figures.json
    """
    from evaluation.oatest.relax.splicing import DISABLED, RelaxSettings, run
    from evaluation.oatest.relax.view import as_json, text

    settings = RelaxSettings(str(library), disabled=DISABLED if disabled is None else disabled, **given)
    return measured_at_once(out, lambda: run(settings), text, lambda study: as_json(study, settings))
