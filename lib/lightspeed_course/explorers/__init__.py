"""Explorers: one module a chapter, each with a pure `view(**params)` and `explore()` that shows it with controls."""
