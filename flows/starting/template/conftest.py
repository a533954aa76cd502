"""So that pytest finds the modules of this folder."""
