"""Giving out: a notebook for each student, and the form of nbgrader."""
