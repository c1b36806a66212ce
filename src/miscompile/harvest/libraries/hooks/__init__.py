"""What runs inside a library's own tests, in processes of their own, and writes down how operators are used there."""
