"""Equivalences of tensor programs as data: the term language, the rules, and the certifier that tests them."""
