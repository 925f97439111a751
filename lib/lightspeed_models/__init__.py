"""Laws put together and fitted to measurements: what to expect, beside what is possible."""
