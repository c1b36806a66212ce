"""`python -m miscompile` is the command `miscompile`, for interpreters whose scripts are not on the PATH."""

from miscompile.cli.main import main

if __name__ == "__main__":
    main()
