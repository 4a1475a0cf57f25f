"""From numbers to pictures: each function takes arrays or plain data and returns a chart."""

from rankveil.report.figures.attributes import loss_per_attribute, marginals, matrix_heat
from rankveil.report.figures.classes import class_sizes
from rankveil.report.figures.curves import dominance_curves, risk_utility_map, strength_curves
from rankveil.report.figures.distances import match_distances, most_exposed, permutation_level
from rankveil.report.figures.links import link_probabilities

__all__ = [
    "class_sizes",
    "dominance_curves",
    "link_probabilities",
    "loss_per_attribute",
    "marginals",
    "match_distances",
    "matrix_heat",
    "most_exposed",
    "permutation_level",
    "risk_utility_map",
    "strength_curves",
]
