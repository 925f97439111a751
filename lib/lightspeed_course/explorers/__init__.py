"""Explorers: one module a chapter, each with a pure `view(**params)` and controls on it."""
