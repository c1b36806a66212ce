"""The error tree. A caller catches a branch, never a message.

The user can fix a `UsageError` (exit code 2); every other `MiscompileError` is a failure of the tool (exit code 3).
"""


class MiscompileError(Exception):
    """Root of every error that this tool raises on purpose."""


class UsageError(MiscompileError):
    """The user asked for something that cannot be done; the message is one line and says what to do."""


class SpecError(UsageError):
    """A spec such as `strict{max_nodes=12}` does not parse or names an unknown part or option."""


class ModelError(UsageError):
    """A model or graph text is broken: it cannot be read, or breaks the ONNX rules."""


class StoreError(UsageError):
    """A findings folder or its database cannot be read or written."""


class ExecutionError(MiscompileError):
    """The execution machinery itself failed (a worker could not be started, a frame was malformed)."""


class RejectedDraft(MiscompileError):  # noqa: N818 - control flow between sampler and generator, not a failure
    """A sampler cannot build a valid call here; the generator tries something else."""
