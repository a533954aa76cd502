"""Code of this project that settings name."""
