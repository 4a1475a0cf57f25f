"""Figures and pages: results drawn for people, the same in reports, notebooks and the web."""
