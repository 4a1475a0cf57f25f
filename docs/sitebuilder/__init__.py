"""Builds the documentation site from docs/, README.md and the catalogue, offline: `scripts/site`."""
