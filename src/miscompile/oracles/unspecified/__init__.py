"""Unspecified behaviour: the results that no standard defines, by rule and by the values of the feed."""
