"""For people's own test suites: an assertion on their models, and the pytest marker that calls it."""
