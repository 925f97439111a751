"""Taking in: files, whose they are, and what an instructor should know of them."""
