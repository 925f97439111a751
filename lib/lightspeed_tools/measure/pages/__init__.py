"""What is shown of a record: tables and figures for the chapters, and a page of its own."""
