"""OATest for TVM: patterns of its own tests inside Relax programs."""
