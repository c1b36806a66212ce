"""Relations between operators of one library, and the instances that they share."""
