"""What all pages share: the workspace and everything in it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse

from rankveil.errors import FileError
from rankveil.web import rendering
from rankveil.web.dispatch import Dispatcher
from rankveil.web.drafts import Drafts
from rankveil.web.runs import Kind, Run, Runs
from rankveil.web.security import TooLargeError
from rankveil.web.sources import Opened, Source, Sources, plain_name
from rankveil.web.workspace import Workspace, write_bytes

TABS = (
    ("data", "Data", ""),
    ("mask", "Mask", "/mask"),
    ("audit", "Audit", "/audit"),
    ("attack", "Attack", "/attack"),
    ("compare", "Compare", "/compare"),
    ("release", "Release", "/release"),
)
TAB_OF = {"mask": "release", "audit": "audit", "attack": "attack", "compare": "compare", "certify": "release"}
"""The tab of each kind of run."""
_MOST_FIELDS = 20_000


async def _read_form(request: Request) -> AsyncIterator[FormData]:
    if not _in_utf_8(request.headers.get("content-type", "")):
        raise HTTPException(400, "A form must be sent in UTF-8.")
    try:
        form = await request.form(max_fields=_MOST_FIELDS)
    except (HTTPException, TooLargeError) as error:
        why = error if isinstance(error, TooLargeError) else error.__context__
        raise HTTPException(413, why.message) if isinstance(why, TooLargeError) else error from None
    try:
        yield form
    finally:
        await form.close()


def _in_utf_8(content_type: str) -> bool:
    """Whether a form is sent as browsers do; other encodings could bring in text that cannot be written."""
    charset = re.search(r"charset\s*=\s*\"?([^\";]*)", content_type, re.IGNORECASE)
    return charset is None or charset[1].strip().lower() in ("utf-8", "utf8")


Form = Annotated[FormData, Depends(_read_form)]
"""What a form sent."""


@dataclass(frozen=True)
class Upload:
    """A small file that came with a form."""

    name: str
    content: bytes

    @property
    def text(self) -> str:
        """What it says."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileError(f"{self.name}: is not UTF-8 text") from None


def read_upload(form: FormData, field: str) -> Upload | None:
    """The file that was chosen in a field, or None."""
    file = form.get(field)
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    return Upload(plain_name(file.filename), file.file.read())


@dataclass(frozen=True)
class Bench:
    """The workbench behind the pages."""

    workspace: Workspace
    limit: int
    sources: Sources = field(init=False)
    drafts: Drafts = field(init=False)
    runs: Runs = field(init=False)
    dispatcher: Dispatcher = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", Sources(self.workspace))
        object.__setattr__(self, "drafts", Drafts(self.workspace))
        object.__setattr__(self, "runs", Runs(self.workspace))
        object.__setattr__(self, "dispatcher", Dispatcher(self.runs))

    def source(self, id: str) -> Source:
        """A table, or the answer that there is none."""
        found = self.sources.find(id)
        if found is None:
            raise HTTPException(404, "There is no such table in the workspace.")
        return found

    def opened(self, source: Source) -> Opened:
        """The table itself."""
        return self.sources.opened(source)

    def run(self, id: str) -> Run:
        """A run, or the answer that there is none."""
        found = self.runs.find(id)
        if found is None:
            raise HTTPException(404, "There is no such run in the workspace.")
        return found

    def result(self, run: Run) -> dict[str, Any]:
        """What came out of a run that is done, or the answer that it is not there any more."""
        found = self.runs.result(run)
        if not found:
            raise HTTPException(404, "There is no such run in the workspace.")
        return found

    def releases(self, source: Source) -> list[Run]:
        """The maskings of a table that are done, the latest first."""
        return [run for run in self.runs.all(source=source.id, kind="mask") if run.status == "done"]

    def work_on(self, source: Source) -> list[Run]:
        """All runs of a table."""
        return self.runs.all(source=source.id)

    def delete_table(self, source: Source) -> None:
        """Delete a table with its plan and all its runs, unless one is under way that needs it."""
        own = self.work_on(source)
        others = [run for run in self.runs.all() if run.settings.get("against") == source.id]
        with self.dispatcher.at_rest([*own, *others]):
            for run in own:
                self.runs.remove(run)
            self.sources.remove(source)
            self.drafts.remove(source.id)

    def delete_run(self, run: Run) -> None:
        """Delete a run and what is about its release, unless one of them is under way."""
        doomed = [run, *self.runs.about(run)]
        with self.dispatcher.at_rest(doomed):
            for each in reversed(doomed):
                self.runs.remove(each)

    def ask(
        self,
        kind: Kind,
        source: Source,
        settings: dict[str, Any],
        *,
        release: str | None = None,
        after: str | None = None,
        secret: str | None = None,
    ) -> Run:
        """Begin a piece of work; a secret that it needs lies in its folder and nowhere else."""
        with self.dispatcher.at_rest(()):  # so that the table is not deleted meanwhile
            source = self.source(source.id)
            run = self.runs.new(
                kind, source.id, settings, declared=asdict(source.declared), release=release, after=after
            )
            if secret is not None:
                write_bytes(self.runs.folder(run) / "secret.json", secret.encode("utf-8"))
            return self.dispatcher.submit(run)


def show(
    template: str,
    *,
    tab: str,
    source: Source | None,
    title: str,
    status: int = 200,
    charts: bool = False,
    **context: Any,
) -> HTMLResponse:
    """A page with the frame that all pages have."""
    return rendering.page(
        template, status=status, tab=tab, tabs=TABS, source=source, title=title, charts=charts, **context
    )


def go(address: str) -> RedirectResponse:
    """On to another page after a form."""
    return RedirectResponse(address, status_code=303)
