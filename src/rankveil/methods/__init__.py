"""One file per masking method or post-step; what lies here is in the catalogue."""
