"""POLYJUICE: what the extreme programs of an e-graph trigger, and what they cost."""
