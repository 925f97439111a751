"""Questions as text: a Markdown file a topic, and beside it the Python that its formulas call."""
