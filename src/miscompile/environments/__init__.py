"""Virtual environments for versions of compilers: made on demand, kept in a cache, listed and removed."""
