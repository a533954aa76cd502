"""Projects of one's own, which use the installed package.

- `project` — `evenkeel init` and `evenkeel update`: a Git repository from `template` and from files of the package
- `versions` — `evenkeel version`: what is installed, and which commit of it
"""
