"""Laws held against sets, one file a subject; each has `PAIRINGS`."""
