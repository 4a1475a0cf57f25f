"""Which method is best for these data: methods at equal risk, equal utility or equal level, or the whole map."""

from rankveil.comparison.comparing import UTILITY, compare
from rankveil.comparison.result import Comparison, Contender, Place, Spread

__all__ = ["UTILITY", "Comparison", "Contender", "Place", "Spread", "compare"]
