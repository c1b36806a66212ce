"""What miscompile needs in order to test the compiler; the compiler itself never imports this."""
