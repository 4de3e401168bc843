"""Make, list and revoke API keys: who may send runs to the server of this store, and who may read them."""

from __future__ import annotations

import argparse
from typing import Any

from playhead._api.points_in_time import coming_us
from playhead._clock import SystemClock, utc_text
from playhead.cli.arguments import add_shared, insist_on_a_store, store_root
from playhead.cli.output import Output, one_line
from playhead.errors import UsageError
from playhead.store import layout
from playhead.store.files import FileStore
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import SCOPES, Key, Keys
from playhead.views import text

_SCOPES = ("ingest", "read")  # of a key of which nothing else is said
_STYLES = {"active": "green", "expired": "yellow", "revoked": "red"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "With the first key the server asks everybody for one, and it goes on to do so when all are revoked.\n"
        "A project is a store of its own; what a key of one project may see does not hold for another.\n\n"
        "examples:\n"
        "  playhead keys create --name ci --scope ingest --expires 90d\n"
        "  playhead keys create --project search-team --scope read\n"
        "  playhead keys list\n"
        "  playhead keys revoke 0c8m4v9rjk2e5xqa"
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    create = _sub(what, "create", "make a key, whose token is shown once")
    create.add_argument("--project", default=layout.DEFAULT_PROJECT, metavar="NAME",
                        help="the project that it opens (%(default)s)")  # fmt: skip
    create.add_argument("--scope", action="append", choices=SCOPES,
                        help="what it may do; repeatable (ingest and read); admin may do everything")  # fmt: skip
    create.add_argument("--name", metavar="TEXT", help="what it is for, to tell it from others")
    create.add_argument("--expires", metavar="WHEN", help="in 12h, 90d, 8w, or at a date; else never")
    listed = _sub(what, "list", "list the keys, also those that no longer work")
    listed.add_argument("--project", metavar="NAME", help="only those of this project")
    revoke = _sub(what, "revoke", "make a key useless for good")
    revoke.add_argument("id", metavar="ID", help="its id, as `list` shows it")


def _sub(what: Any, name: str, told: str) -> argparse.ArgumentParser:
    description = f"{told[0].upper()}{told[1:]}."
    parser: argparse.ArgumentParser = what.add_parser(name, help=told, description=description)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_shared(parser, inner=True)
    return parser


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    root = store_root(args.store)
    if args.store is not None and (args.what != "create" or root.exists()):
        insist_on_a_store(args.store)
    with Registry(root) as registry:
        keys = Keys(registry)
        if args.what == "create":
            FileStore(root).refuse_newer()
            return _create(keys, args, out)
        if args.what == "revoke":
            return _revoke(keys, args.id, out)
        return _list(keys, args.project, out)


def _create(keys: Keys, args: argparse.Namespace, out: Output) -> int:
    expires = None if args.expires is None else coming_us(args.expires)
    made = keys.create(args.project, args.scope or _SCOPES, args.name, expires)
    if out.json:
        out.emit({**_document(made.key), "token": made.token})
        return 0
    out.print(made.token)
    until = "" if made.key.expires_us is None else f", until {_moment(made.key.expires_us)}"
    out.warn(
        f"\nKey {made.key.id} may {_may(made.key)} in project {made.key.project}{until}. The token above is shown only"
        " now.\n"
        "  HTTP             Authorization: Bearer TOKEN\n"
        "  Playhead         PLAYHEAD_API_KEY=TOKEN\n"
        "  OpenTelemetry    OTEL_EXPORTER_OTLP_HEADERS='Authorization=Bearer%20TOKEN'\n"
        f"`playhead keys revoke {made.key.id}` ends it."
    )
    return 0


def _list(keys: Keys, project: str | None, out: Output) -> int:
    found = keys.list(None if project is None else layout.project_name(project))
    if out.json:
        out.emit([_document(key) for key in found])
        return 0
    if not found:
        out.print("No keys." if keys.any() else "No keys: the server asks nobody for one.")
        out.print("Make one:  playhead keys create")
        return 0
    now = SystemClock().wall_us()
    out.table(
        ("id", "name", "project", "scopes", "status", "created", "expires", "last used"),
        [
            (
                (key.id, "cyan"),
                key.name,
                key.project,
                ", ".join(key.scopes),
                (_status(key, now), _STYLES[_status(key, now)]),
                text.ago(key.created_us, now),
                "never" if key.expires_us is None else _moment(key.expires_us),
                "never" if key.used_us is None else text.ago(key.used_us, now),
            )
            for key in found
        ],
        whole=("id", "status"),
        drop=("created", "last used", "scopes"),
    )
    return 0


def _revoke(keys: Keys, id: str, out: Output) -> int:
    if id.startswith("ph_"):
        raise UsageError(
            "that is a token, which belongs on no command line",
            hint=f"Its id is what stands after ph_: `playhead keys revoke {id.split('_')[1][:16]}`.",
        )
    key = keys.revoke(id)
    if out.json:
        out.emit(_document(key))
        return 0
    named = "" if key.name is None else f" ({one_line(key.name)})"
    out.print(f"revoked {key.id}{named}, which might {_may(key)} in project {key.project}")
    return 0


def _document(key: Key) -> dict[str, Any]:
    moments = {"created": key.created_us, "expires": key.expires_us, "used": key.used_us, "revoked": key.revoked_us}
    return {
        "id": key.id,
        "name": key.name,
        "project": key.project,
        "scopes": list(key.scopes),
        "status": _status(key, SystemClock().wall_us()),
        **{name: None if us is None else utc_text(us) for name, us in moments.items()},
    }


def _status(key: Key, now_us: int) -> str:
    if key.revoked_us is not None:
        return "revoked"
    return "active" if key.works_at(now_us) else "expired"


def _may(key: Key) -> str:
    return "do everything" if "admin" in key.scopes else " and ".join(key.scopes)


def _moment(us: int) -> str:
    return utc_text(us)[:16].replace("T", " ") + " UTC"
