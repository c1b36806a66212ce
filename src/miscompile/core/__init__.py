"""Values that cross borders, and the ports between the parts."""
