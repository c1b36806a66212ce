"""miscompile finds crashes and wrong results in deep-learning compilers.

The package face holds the version only; inside the package one imports the module that defines a name.
"""

__version__ = "0.1.0"
