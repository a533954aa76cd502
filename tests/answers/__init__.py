"""Answers in many styles to references of every kind, right ones and near misses, drawn with a seed."""
