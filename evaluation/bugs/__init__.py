"""The book of bugs: a page of every cause that was found, and its scripts, run again on today's compilers."""
