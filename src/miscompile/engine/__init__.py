"""The loop, its lanes, and the wiring of all parts."""
