"""POLYJUICE: the passes that the extreme programs of an e-graph trigger, and the cost of making them."""
