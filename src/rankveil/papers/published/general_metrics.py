"""What Domingo-Ferrer, Muralidhar and Bras-Amoros (2021) print of their experiments, section 6."""

from __future__ import annotations

ATTRIBUTES = ("FICA", "FEDTAX", "INTVAL", "POTHVAL")
"""Of the Census data; the versions with 2 and 3 attributes have the first of them."""
VERSIONS = (2, 3, 4)
SIZES = (*range(2, 101), 200, 300, 400, 500)
"""k of the microaggregation in figure 2."""
EPSILONS = (0.01, 0.1, 1.0, 10.0, 25.0, 50.0, 100.0)
"""Of the Laplace noise in figure 3."""

MEASURES = ("UM", "CM1", "CM2", "CM3")
TABLE_1 = """
Census 0.9638 0.9904 0.9849 0.6673
Simulated 1.0000 0.9914 0.9913 0.0277
"""
"""IPSO, averages of 100 replications: UM, CM1, CM2, CM3."""
REPLICATIONS = 100
RECORDS = 1080
"""Of both data sets."""
CORRELATION = 0.99
"""Between the attributes of the simulated data."""
