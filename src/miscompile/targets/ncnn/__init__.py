"""ncnn: its optimised layouts and convolutions against plain ones."""
