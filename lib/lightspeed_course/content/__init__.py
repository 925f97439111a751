"""What the course asks and shows: wrong claims."""
