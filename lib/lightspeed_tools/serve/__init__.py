"""How to serve a model on GPUs within a promise, and what published rows say of that answer."""
