"""The store of findings."""
