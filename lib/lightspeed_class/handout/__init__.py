"""Giving out: a notebook for each student."""
