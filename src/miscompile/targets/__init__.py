"""One folder for each compiler."""
