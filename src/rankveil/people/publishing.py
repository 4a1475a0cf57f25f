"""What is published and what is not, written together or not at all: release, manifest and secret."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pyarrow as pa

from rankveil import files
from rankveil.digests import digest_of
from rankveil.errors import FileError, FormatError
from rankveil.files import Dialect
from rankveil.files.formulas import for_spreadsheets
from rankveil.masking.register import Entered, Entry, Register
from rankveil.partitions import places
from rankveil.plans import Plan
from rankveil.table import Table

if TYPE_CHECKING:
    from rankveil.cluster.folders import Folder
    from rankveil.manifest import Manifest, Secret

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class Places:
    """Where a release, its manifest and its secret go."""

    release: str
    manifest: str
    secret: str

    @classmethod
    def beside(cls, release: PathLike, *, manifest: PathLike | None = None, secret: PathLike | None = None) -> Places:
        """Manifest and secret beside the release; the secret of one at an address stays in the working folder."""
        out = os.fspath(release)
        public = private = files.companion(out)
        if places.is_address(out):
            public = places.absolute(out)
            private = public.rpartition("/")[2]
        return cls(
            out,
            f"{public}.manifest.json" if manifest is None else os.fspath(manifest),
            f"{private}.secret.json" if secret is None else os.fspath(secret),
        )

    def check(self, *, folder: bool = False) -> None:
        """Refuse places that cannot be written; `folder` says that others check that of the release."""
        names = {"release": self.release, "manifest": self.manifest, "secret": self.secret}
        if folder:
            names.pop("release")
        for what, path in names.items():
            if what == "manifest" and places.is_address(path):
                continue
            files.check_writable(path, table=what == "release")
        if files.same_file(self.manifest, self.secret) or any(
            files.same_file(self.release, path) for path in (self.manifest, self.secret)
        ):
            raise FileError("release, manifest and secret need names of their own")

    def notes(self) -> list[str]:
        """What a person should do about a secret that lies with what is published."""
        said = []
        if places.is_address(self.release):
            said.append(f"the secret stays on this machine: {os.path.abspath(self.secret)}")
        published = [
            os.path.realpath(path) for path in (self.release, self.manifest)
        ]  # an address is in no folder here
        if os.path.dirname(os.path.realpath(self.secret)) in (published[0], *map(os.path.dirname, published)):
            said.append(
                "the secret lies beside what you publish: keep it apart, for example with --secret private/secret.json"
            )
        return said


def check_formulas(data: Any, to: Places, *, formulas: str) -> None:
    """Refuse texts that a spreadsheet would run, before the rows are shuffled: an error names those of the original."""
    if formulas == "refuse":
        for_spreadsheets(_as_arrow(data), to.release)


@dataclass(frozen=True, eq=False)
class Written:
    """What was written, and what a person should know of it."""

    manifest: Manifest
    """With the digest of what the file holds."""
    entered: Entered
    notes: tuple[str, ...]


def write(
    data: Any,
    manifest: Manifest,
    secret: Secret,
    to: Places,
    *,
    plan: Plan,
    dialect: Dialect | None = None,
    formulas: str = "refuse",
    described: bool = True,
) -> Written:
    """Write a release in memory, with its entry in the register of releases.

    `described` says that the digest in the manifest is that of `data`; otherwise it is computed.
    """
    table, notes = for_spreadsheets(_as_arrow(data), to.release, formulas=formulas)
    held = files.as_held(table, to.release)
    if held is not data or not described:  # its content may be another now
        content = Table(held, decimal="." if dialect is None else dialect.decimal)
        manifest = manifest.with_digest(digest_of(content))
    with Register(to.secret) as register, files.Staged() as staged:
        _add(staged, secret, to.secret, mode=0o600)
        _add(staged, manifest, to.manifest)
        said = files.add_table(staged, table, to.release, dialect=dialect)
        entered = register.add(staged, _entry(manifest, secret, to, plan))
    return Written(manifest, entered, (*notes, *said))


def write_parts(folder: Folder, manifest: Manifest, secret: Secret, to: Places, *, plan: Plan) -> Entered:
    """Give the folder of a release in parts its name, with its manifest, its secret and its entry in the register."""
    with Register(to.secret) as register, files.Staged() as staged:
        _add(staged, secret, to.secret, mode=0o600)
        if places.is_address(to.manifest):
            folder.publish(to.manifest, manifest.to_json())
        else:
            _add(staged, manifest, to.manifest)
        staged.join(folder)
        return register.add(staged, _entry(manifest, secret, to, plan))


def _entry(manifest: Manifest, secret: Secret, to: Places, plan: Plan) -> Entry:
    """What the register says of a release."""
    assert secret.fingerprint is not None
    return Entry.of(secret.fingerprint, manifest.content, plan.to_dict(), (to.release, to.manifest, to.secret))


def _add(staged: files.Staged, document: Manifest | Secret, path: str, *, mode: int = 0o644) -> None:
    staged.add(path, lambda file: file.write(document.to_json().encode("utf-8")), mode=mode)


def _as_arrow(data: Any) -> pa.Table:
    """A table of whatever library, without the row labels of pandas."""
    if isinstance(data, pa.Table):
        return data
    frame = nw.from_native(data, eager_only=True)
    if nw.maybe_get_index(frame) is not None:
        frame = nw.maybe_reset_index(frame)
    try:
        made = frame.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise FormatError(f"the release cannot be written: {str(error).splitlines()[0]}") from None
    told: Mapping[bytes, bytes] = made.schema.metadata or {}
    return made.replace_schema_metadata({key: value for key, value in told.items() if key != b"pandas"})
