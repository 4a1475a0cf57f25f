"""Who may come in: a one-time token in the printed address, exchanged for the session of a browser."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress

from rankveil.errors import FileError
from rankveil.files.user_key import is_sealed, seal
from rankveil.web.workspace import Workspace, read_json, write_json

_MOST = 20
"""Sessions that are kept; the oldest goes first."""


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Sessions:
    """The sessions of a workspace: their hashes only, so that a restarted server knows its browsers again."""

    def __init__(
        self, workspace: Workspace, *, token: str, renewed: Callable[[str], object] = lambda token: None
    ) -> None:
        self._path = workspace.root / "sessions.json"
        self._token = token
        self._renewed = renewed
        self._guard = threading.Lock()
        self._root = str(workspace.root)
        kept = read_json(self._path) or {}
        known = kept.get("sessions")
        # a workspace may have come from somebody else, whose browsers do not come in
        self._known: list[str] = []
        if isinstance(known, list) and is_sealed("sessions", self._bound(known), kept.get("seal")):
            self._known = [each for each in known if isinstance(each, str)]
        # A browser sends the cookies of 127.0.0.1 to every port: each workspace has a name of its own.
        self.cookie = f"rankveil_{_hashed(str(workspace.root))[:12]}"

    def exchange(self, token: str) -> str | None:
        """A session for the right token, which is then worth nothing any more; `renewed` hears of the next one."""
        with self._guard:
            if not hmac.compare_digest(_hashed(token), _hashed(self._token)):
                return None
            self._token = secrets.token_urlsafe(32)
            session = secrets.token_urlsafe(32)
            self._known = [*self._known, _hashed(session)][-_MOST:]
            with suppress(FileError):  # a full disk: this server knows the browser, the next one will not
                write_json(self._path, {"sessions": self._known, "seal": seal("sessions", self._bound(self._known))})
        self._renewed(self._token)
        return session

    def _bound(self, known: list[str]) -> bytes:
        """What is sealed: the sessions of this workspace."""
        return json.dumps([self._root, known]).encode()

    def knows(self, session: str) -> bool:
        """Whether a cookie's text is one of the sessions."""
        given = _hashed(session)
        return any(hmac.compare_digest(given, known) for known in self._known)
