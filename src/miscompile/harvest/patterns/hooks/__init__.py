"""Modules that run as child processes: each runs a compiler's own tests under a hook on the compiler's passes."""
