"""Projects of one's own, which use the installed package: `project` makes them of `template` and of its files."""
