"""Mining: patterns out of documented tests, and out of any program on which a pass is seen to fire."""
