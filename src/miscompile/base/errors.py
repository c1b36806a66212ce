"""The error tree. A caller catches a branch, never a message.

The user can fix a `UsageError` (exit code 2) by another command line; every other `MiscompileError` is a failure of the
tool or of the machine (exit code 3), except `NothingTested` (exit code 4).
"""

import errno


class MiscompileError(Exception):
    """Root of every error that this tool raises on purpose."""


class UsageError(MiscompileError):
    """The user asked for something that cannot be done; the message is one line and says what to do."""


class SpecError(UsageError):
    """A spec such as `strict{max_nodes=12}` does not parse or names an unknown part or option."""


class ModelError(UsageError):
    """A model or graph text is broken: it cannot be read, or breaks the ONNX rules."""


class MissingCompilerError(UsageError):
    """A target is not installed, neither beside this tool nor in an environment of its own; the message says how."""


class NothingTested(MiscompileError):  # noqa: N818 - the tool worked, and says that its silence proves nothing
    """A run ended without any test that could have failed, so that it must not end like one that found nothing."""


class StoreError(MiscompileError):
    """A stored file is damaged, its folder has vanished, or the disk is full or fails."""


class InputError(StoreError, UsageError):
    """A file or folder that the user named is absent, may not be written, or does not hold what was asked for."""


class ExecutionError(MiscompileError):
    """The execution machinery itself failed (a worker could not be started, a frame was malformed)."""


class RejectedDraft(MiscompileError):  # noqa: N818 - control flow between sampler and generator, not a failure
    """A sampler cannot build a valid call here; the generator tries something else."""


_NOT_ALLOWED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP}
)


def write_error(what: str, error: OSError, advice: str = "") -> StoreError:
    """Return the error for a failed write of `what`, with `advice` behind the system's reason.

    It is an InputError where another path helps (no permission, not a folder), else a StoreError (no room).
    """
    kind = InputError if error.errno in _NOT_ALLOWED else StoreError
    return kind(f"cannot write {what}: {error.strerror or error}{advice}")
