"""What decides about a release: five numbers with their limits, red, amber or green, and what would help."""
