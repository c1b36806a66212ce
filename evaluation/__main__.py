"""`python -m evaluation`."""

from evaluation.program import program

program.main(prog_name="python -m evaluation")
