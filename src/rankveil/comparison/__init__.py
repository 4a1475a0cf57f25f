"""Which method is best for these data: methods at a limit, at equal risk, utility or level, or the whole map."""

from rankveil.comparison.comparing import compare
from rankveil.comparison.result import Comparison, Contender, Pick, Place, Spread

__all__ = ["Comparison", "Contender", "Pick", "Place", "Spread", "compare"]
