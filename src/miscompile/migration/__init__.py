"""Test migration: operators with the parameters of library tests, run through the front ends of compilers."""
