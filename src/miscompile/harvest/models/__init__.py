"""The corpus: real models out of installed packages, files and architectures, kept on this machine for campaigns."""
