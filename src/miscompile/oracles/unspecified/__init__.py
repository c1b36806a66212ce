"""Results that no standard promises, by rule and by what was fed."""
