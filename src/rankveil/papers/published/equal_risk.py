"""What Domingo-Ferrer, Ricci and Soria-Comas (2017) print of their experiments, section 5."""

from __future__ import annotations

CENSUS = (
    *("AFNLWGT", "AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX", "TAXINC"),
    *("POTHVAL", "INTVAL", "PEARNVAL", "FICA", "WSALVAL", "ERNVAL"),
)
EIA = (
    *("MONTH", "RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES"),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
)
"""The paper says only that there are 11 numerical attributes; these give the risk that it reports."""

STRENGTHS = {
    "mdav": (5, 10, 15, 20, 25, 50),
    "correlated_noise": (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 3.0),
    "rank_swap": (1.0, 5.0, 7.5, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0),
    "hohne_noise": (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9, 1.0),
}
"""Figure 1: k, gamma, p (in percent here) and s."""

NAMES = {
    "mdav": "microaggregation",
    "correlated_noise": "correlated noise addition",
    "rank_swap": "rank swapping",
    "hohne_noise": "multiplicative noise",
}
"""What Table 1 calls the methods."""

RISK = {"CENSUS": "0.45", "EIA": "0.58"}
"""Where the methods match."""
MATCHED = {
    "CENSUS": {"mdav": "5", "correlated_noise": "1", "rank_swap": "20", "hohne_noise": "0.5"},
    "EIA": {"mdav": "5", "correlated_noise": "0.05", "rank_swap": "8", "hohne_noise": "0.3"},
}
"""The parameters at which they do."""

TABLE_1 = """
mdav 0.000428 0.16 0.0000217 0.040
correlated_noise 0.0383 0.38 0.0000422 0.065
rank_swap 0.00351 0.28 0.000901 0.091
hohne_noise 0.0063 0.29 0.0000985 0.066
"""
"""Per method the propensity score and the earth mover's distance, CENSUS and then EIA."""

ORDER = {
    "CENSUS": ("mdav", "rank_swap", "hohne_noise", "correlated_noise"),
    "EIA": ("mdav", "correlated_noise", "hohne_noise", "rank_swap"),
}
"""From the best utility to the worst, by both measures."""
