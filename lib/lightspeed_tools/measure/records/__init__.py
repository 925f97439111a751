"""What was measured, kept: records and their files, two side by side, and how far to trust one."""
