"""Programs with symbolic sizes, made by generalising static graphs: search for a plan, replay, shape arithmetic."""
