"""The static site of one or several campaigns: an overview, the passes, support tables, and a page for each finding."""
