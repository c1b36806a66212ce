"""The public API: what `import miscompile` offers. The command line is built on it; see `docs/api.md`."""
