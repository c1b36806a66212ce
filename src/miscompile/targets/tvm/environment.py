"""The environment variables that TVM's process requires at its start."""


def prepare() -> dict[str, str]:
    """Return the variables that keep TVM's thread pool to one thread; its library reads them when it is loaded."""
    return {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TVM_BIND_THREADS": "0"}
