"""miscompile finds crashes and wrong results in deep-learning compilers.

    import miscompile

    for finding in miscompile.fuzz("onnxruntime", time=60):
        print(finding.identifier, finding.message)

This is the public API; `docs/api.md` shows how to use it. Its names are imported when they are first used, so that
`import miscompile` stays cheap. Inside the package one imports the module that defines a name.
"""

__version__ = "0.1.0"

__all__ = [
    "BoundaryRow",
    "CampaignFinding",
    "CampaignResult",
    "Comparison",
    "ExecutionError",
    "Explanation",
    "MiscompileError",
    "MissingCompilerError",
    "ModelError",
    "NothingTested",
    "OutputComparison",
    "ReducedModel",
    "StoreError",
    "UsageError",
    "__version__",
    "check",
    "compare",
    "explain",
    "fuzz",
    "load_finding",
    "reduce",
]

TYPE_CHECKING = False
"""Type checkers take it for true by its name; to import `typing` for it would be most of the import's time."""

if TYPE_CHECKING:
    from miscompile.api.campaigns import CampaignResult, check, fuzz
    from miscompile.api.comparison import compare
    from miscompile.api.diagnosis import BoundaryRow, Explanation, ReducedModel, explain, reduce
    from miscompile.api.findings import CampaignFinding, load_finding
    from miscompile.base.errors import (
        ExecutionError,
        MiscompileError,
        MissingCompilerError,
        ModelError,
        NothingTested,
        StoreError,
        UsageError,
    )
    from miscompile.oracles.supplied import Comparison, OutputComparison
else:
    _HOMES = {
        "api.campaigns": ("CampaignResult", "check", "fuzz"),
        "api.comparison": ("compare",),
        "api.diagnosis": ("BoundaryRow", "Explanation", "ReducedModel", "explain", "reduce"),
        "api.findings": ("CampaignFinding", "load_finding"),
        "base.errors": (
            "ExecutionError", "MiscompileError", "MissingCompilerError", "ModelError", "NothingTested", "StoreError",
            "UsageError",
        ),
        "oracles.supplied": ("Comparison", "OutputComparison"),
    }  # fmt: skip
    """The modules that define the names; a test holds them against the imports above."""

    def __getattr__(name):  # noqa: ANN001, ANN202 - type checkers read the imports above
        """Return a name of the public API from the module that defines it, and keep it here."""
        from importlib import import_module

        for module, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"miscompile.{module}"), name)
                return found
        raise AttributeError(f"module 'miscompile' has no attribute {name!r}")

    def __dir__():  # noqa: ANN202
        """Return the names of the public API, for completion in a shell or notebook."""
        return sorted({*globals(), *__all__})
