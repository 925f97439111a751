"""Answers about your own machine, log and model, by the laws of the course."""
