"""One file per measure or small family; what lies here is in the catalogue."""
