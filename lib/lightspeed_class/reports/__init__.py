"""Giving back: points, feedback and reports."""
