"""Public bugs that a release mends, and which of them unattended campaigns on the releases before find."""
