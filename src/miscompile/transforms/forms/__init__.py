"""Other forms of one call, of which a compiler may take some and refuse others."""
