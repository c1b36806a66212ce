"""Mining of patterns from documented tests, and from any program that a pass is observed to change."""
