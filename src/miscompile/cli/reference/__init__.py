"""What is made from the commands: the table for completion, the page of the documentation and the man page."""
