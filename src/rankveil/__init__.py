"""rankveil: mask microdata and audit any release, seen as a permutation of ranks plus a little noise."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rankveil._version import __version__

if TYPE_CHECKING:
    from rankveil import catalogue, datasets
    from rankveil.auditing import Audit, audit
    from rankveil.comparison import Comparison, compare
    from rankveil.errors import (
        ClusterError,
        FileError,
        FormatError,
        NotApplicableError,
        PairError,
        ParameterError,
        RankveilError,
        TableError,
    )
    from rankveil.hierarchy import Hierarchy
    from rankveil.inspection import Inspection, inspect
    from rankveil.manifest import Manifest, Secret
    from rankveil.masker import Masker
    from rankveil.pairing import reverse_map
    from rankveil.people.certificate import Certificate, certify
    from rankveil.people.intruder import Attack, attack
    from rankveil.people.protector import Release, mask
    from rankveil.people.subject import Verification, subject_page, verify
    from rankveil.people.user import Corrected, correct
    from rankveil.plans import Plan, Step
    from rankveil.schema import Schema
    from rankveil.table import Table

_ROOMS = {
    "Attack": "people.intruder",
    "Audit": "auditing",
    "Certificate": "people.certificate",
    "ClusterError": "errors",
    "Comparison": "comparison",
    "Corrected": "people.user",
    "FileError": "errors",
    "FormatError": "errors",
    "Hierarchy": "hierarchy",
    "Inspection": "inspection",
    "Manifest": "manifest",
    "Masker": "masker",
    "NotApplicableError": "errors",
    "PairError": "errors",
    "ParameterError": "errors",
    "Plan": "plans",
    "RankveilError": "errors",
    "Release": "people.protector",
    "Schema": "schema",
    "Secret": "manifest",
    "Step": "plans",
    "Table": "table",
    "TableError": "errors",
    "Verification": "people.subject",
    "attack": "people.intruder",
    "audit": "auditing",
    "certify": "people.certificate",
    "compare": "comparison",
    "correct": "people.user",
    "inspect": "inspection",
    "mask": "people.protector",
    "reverse_map": "pairing",
    "subject_page": "people.subject",
    "verify": "people.subject",
}
"""Where each public name lives: rooms are opened when a name is first used, so that `import rankveil` is quick."""

__all__ = [
    "Attack",
    "Audit",
    "Certificate",
    "ClusterError",
    "Comparison",
    "Corrected",
    "FileError",
    "FormatError",
    "Hierarchy",
    "Inspection",
    "Manifest",
    "Masker",
    "NotApplicableError",
    "PairError",
    "ParameterError",
    "Plan",
    "RankveilError",
    "Release",
    "Schema",
    "Secret",
    "Step",
    "Table",
    "TableError",
    "Verification",
    "__version__",
    "attack",
    "audit",
    "catalogue",
    "certify",
    "compare",
    "correct",
    "datasets",
    "inspect",
    "mask",
    "reverse_map",
    "subject_page",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in ("catalogue", "datasets"):
        return importlib.import_module(f"rankveil.{name}")
    if name not in _ROOMS:
        raise AttributeError(f"module 'rankveil' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rankveil.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
