"""The environment variables of tract's process."""


def prepare() -> dict[str, str]:
    """Return the variables that keep Rust's stack traces out of error messages, where they would look like causes."""
    return {"RUST_BACKTRACE": "0", "RUST_LIB_BACKTRACE": "0"}
