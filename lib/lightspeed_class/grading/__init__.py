"""Grading: student code in a sandbox, answers judged outside it, many at a time."""
