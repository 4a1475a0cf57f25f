"""What a plan makes of a table: a table in, a release out.

- `account`: what the steps did, and what is to be told of it;
- `working`: a table while the steps are at work on it;
- `choosing`: the columns that a step works on;
- `defaults`: steps for what the decisions on the columns say and no step was named for;
- `settling`: strengths that depend on how many columns a step masks;
- `columns`: a step on one column, or on several together;
- `grid`: the grid on which numbers that were computed from draws are released;
- `applying`: the steps of a plan, one after the other;
- `release_key`: what the draws of a release come from.
"""

from __future__ import annotations

from rankveil.masking.account import Account, Applied
from rankveil.masking.applying import apply
from rankveil.masking.choosing import as_labels, columns_of, said_of_kinds, suited, takes
from rankveil.masking.defaults import Defended, besides, defended, masks, telling_weights, untouched
from rankveil.masking.release_key import release_key
from rankveil.masking.settling import settled

__all__ = [
    "Account",
    "Applied",
    "Defended",
    "apply",
    "as_labels",
    "besides",
    "columns_of",
    "defended",
    "masks",
    "release_key",
    "said_of_kinds",
    "settled",
    "suited",
    "takes",
    "telling_weights",
    "untouched",
]
