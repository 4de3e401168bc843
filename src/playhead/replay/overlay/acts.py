"""Stand in place of the functions that change the file system: what they do is done above, and the world stays."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

from playhead.replay.overlay.layers import Found, failure
from playhead.replay.overlay.view import Naming, View, given, given_text

_BOTH = os.W_OK | os.X_OK


class Acts:
    """Functions by the names of those that they stand for."""

    def __init__(self, view: View) -> None:
        self._view, self._layers, self._raw = view, view.layers, view.raw

    def instead(self) -> dict[str, Callable[..., Any]]:
        """Return what to put in whose place."""
        names: tuple[str, ...] = (
            "chmod",
            "chown",
            "lchown",
            "link",
            "mkdir",
            "mkfifo",
            "mknod",
            "remove",
            "removexattr",
            "rename",
        )
        names += ("replace", "rmdir", "setxattr", "symlink", "truncate", "unlink", "utime")
        names += ("chflags", "lchflags", "lchmod")
        return {name: getattr(self, name) for name in names}

    # What is new.

    def mkdir(self, path: Any, mode: Any = 0o777, *, dir_fd: Any = None) -> None:
        """Make a folder."""
        found = self._told("os.mkdir", (path, mode), path, dir_fd)
        if found is None or found.apart:
            self._raw.mkdir(path, mode, dir_fd=dir_fd)
            return
        with Naming(given(path)), self._layers.lock:
            self._raw.mkdir(self._room_for(path, dir_fd, slash=True), mode)

    def mkfifo(self, path: Any, mode: Any = 0o666, *, dir_fd: Any = None) -> None:
        """Make a pipe with a name."""
        with Naming(None):
            found = self._found(path, dir_fd)
            if found is None or found.apart:
                self._raw.mkfifo(path, mode, dir_fd=dir_fd)
                return
            with self._layers.lock:
                self._raw.mkfifo(self._room_for(path, dir_fd), mode)

    def mknod(self, path: Any, mode: Any = 0o600, device: Any = 0, *, dir_fd: Any = None) -> None:
        """Make a file, a pipe or a device."""
        with Naming(None):
            found = self._found(path, dir_fd)
            if found is None or found.apart:
                self._raw.mknod(path, mode, device, dir_fd=dir_fd)
                return
            with self._layers.lock:
                self._raw.mknod(self._room_for(path, dir_fd), mode, device)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: Any = None) -> None:
        """Make a symbolic link."""
        found = self._told("os.symlink", (src, dst), dst, dir_fd) if given_text(src) is not None else None
        if found is None or found.apart:
            self._raw.symlink(src, dst, dir_fd=dir_fd)
            return
        with Naming(given(src), given(dst)), self._layers.lock:
            self._raw.symlink(src, self._room_for(dst, dir_fd))

    def link(
        self, src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None, follow_symlinks: bool = True
    ) -> None:
        """Give a file another name."""
        numbers = {"src_dir_fd": src_dir_fd, "dst_dir_fd": dst_dir_fd}
        if not self._are_ours(src, src_dir_fd, dst, dst_dir_fd):
            self._raw.link(src, dst, **numbers, follow_symlinks=follow_symlinks)
            return
        sys.audit("os.link", given(src), given(dst), *(-1 if one is None else one for one in numbers.values()))
        with Naming(given(src), given(dst)), self._layers.lock:
            source = self._must(self._found(src, src_dir_fd))
            if self._is_apart(dst, dst_dir_fd):
                raise failure(errno.EXDEV)
            room = self._room_for(dst, dst_dir_fd)
            if source.apart:  # by way of /proc, as a file gets a name that had none
                self._raw.link(source.place, room, follow_symlinks=follow_symlinks)
                return
            if source.is_folder:
                raise failure(errno.EPERM)
            if self._layers.device_of(source.path) != self._layers.device_of(self._layers.shown(room)):
                raise failure(errno.EXDEV)
            self._raw.link(self._layers.up(source), room, follow_symlinks=False)

    # What is taken away.

    def unlink(self, path: Any, *, dir_fd: Any = None) -> None:
        """Delete a file."""
        found = self._told("os.remove", (path,), path, dir_fd)
        if found is None or found.apart:
            self._raw.unlink(path, dir_fd=dir_fd)
            return
        with Naming(given(path)), self._layers.lock:
            found = self._must(self._found(path, dir_fd))
            if found.is_folder:
                raise failure(errno.EISDIR if sys.platform == "linux" else errno.EPERM)
            self._may_change(found)
            self._layers.take_away(found)

    remove = unlink

    def rmdir(self, path: Any, *, dir_fd: Any = None) -> None:
        """Delete a folder that is empty."""
        found = self._told("os.rmdir", (path,), path, dir_fd)
        if found is None or found.apart:
            self._raw.rmdir(path, dir_fd=dir_fd)
            return
        with Naming(given(path)), self._layers.lock:
            text = os.fsdecode(path)
            if os.path.basename(text) == ".":
                raise failure(errno.EINVAL)
            found = self._must(self._found(text.rstrip("/") or "/", dir_fd))
            if not found.is_folder:
                raise failure(errno.ENOTDIR)
            if found.path == "/":
                raise failure(errno.EBUSY)
            if self._layers.names(found):
                raise failure(errno.ENOTEMPTY)
            self._may_change(found)
            self._layers.take_away(found)

    # What gets another name.

    def rename(self, src: Any, dst: Any, *, src_dir_fd: Any = None, dst_dir_fd: Any = None) -> None:
        """Give something another name, in place of what had it."""
        if not self._are_ours(src, src_dir_fd, dst, dst_dir_fd):
            self._raw.rename(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            return
        numbers = (-1 if one is None else one for one in (src_dir_fd, dst_dir_fd))
        sys.audit("os.rename", given(src), given(dst), *numbers)
        with Naming(given(src), given(dst)), self._layers.lock:
            source = self._named(src, src_dir_fd)
            target = self._named(dst, dst_dir_fd)
            if source.apart or target.apart or self._are_on_two_devices(source, target):
                raise failure(errno.EXDEV)
            if source.facts is None:
                raise failure(errno.ENOENT)
            if self._is_in_order(source, target):
                self._may_change(source)
                self._may_change(target)
                self._move(source, target)

    replace = rename

    def _named(self, path: Any, folder: Any) -> Found:
        """Return what has a name, which may end in a slash where it is a folder."""
        text = os.fsdecode(path)
        if os.path.basename(text.rstrip("/")) in (".", ".."):
            raise failure(errno.EBUSY)
        bare = text.rstrip("/") or "/"
        found = self._found(bare, folder)
        assert found is not None
        found.slash = bare != text
        return found

    def _are_on_two_devices(self, source: Found, target: Found) -> bool:
        return self._layers.device_of(os.path.dirname(source.path)) != self._layers.device_of(
            os.path.dirname(target.path)
        )

    def _is_in_order(self, source: Found, target: Found) -> bool:
        """Say whether anything is to be done; OSError where it cannot be."""
        if (source.slash or target.slash) and not source.is_folder:
            raise failure(errno.ENOTDIR)
        if target.path.startswith(source.path + "/") and source.is_folder:
            raise failure(errno.EINVAL)
        if source.path.startswith(target.path + "/"):
            raise failure(errno.ENOTEMPTY)
        if target.facts is None:
            return True
        if source.path == target.path:
            return False
        if source.is_folder and not target.is_folder:
            raise failure(errno.ENOTDIR)
        if target.is_folder and not source.is_folder:
            raise failure(errno.EISDIR)
        if target.is_folder and self._layers.names(target):
            raise failure(errno.ENOTEMPTY)
        there, here = source.facts, target.facts
        assert there is not None
        return (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino)  # two names of one file stay

    def _move(self, source: Found, target: Found) -> None:
        place = self._layers.all_up(source)
        self._layers.make_way(target.path)
        self._raw.rename(place, self._layers.files + target.path)
        if target.below is not None:
            self._layers.hide(target.path)
        if source.below is not None:
            self._layers.hide(source.path)

    # What is changed.

    def truncate(self, path: Any, length: Any) -> None:
        """Cut a file, or make it longer."""
        if isinstance(path, int):
            self._raw.truncate(path, length)
            return
        found = self._told("os.truncate", (path, length), path, None, folder=False)
        if found is None or found.apart:
            self._raw.truncate(path, length)
            return
        with Naming(given(path)), self._layers.lock:
            found = self._must(self._found(path, None, follow=True))
            if found.below is not None and found.above is None and not self._raw.access(found.path, os.W_OK):
                raise failure(errno.EACCES)
            self._raw.truncate(self._layers.up(found), length)

    def chmod(self, path: Any, mode: Any, *, dir_fd: Any = None, follow_symlinks: bool = True) -> None:
        """Change permissions."""
        rest = {"follow_symlinks": follow_symlinks}
        self._change(("os.chmod", path, mode), self._raw.chmod, path, (mode,), dir_fd, rest)

    def lchmod(self, path: Any, mode: Any) -> None:
        """Change the permissions of a link."""
        self._change(("os.chmod", path, mode), self._raw.lchmod, path, (mode,), None, {}, follow=False)

    def chown(self, path: Any, uid: Any, gid: Any, *, dir_fd: Any = None, follow_symlinks: bool = True) -> None:
        """Change the owner."""
        rest = {"follow_symlinks": follow_symlinks}
        told = ("os.chown", path, *_unsigned(uid, gid))
        self._change(told, self._raw.chown, path, (uid, gid), dir_fd, rest)

    def lchown(self, path: Any, uid: Any, gid: Any) -> None:
        """Change the owner of a link."""
        told = ("os.chown", path, *_unsigned(uid, gid))
        self._change(told, self._raw.lchown, path, (uid, gid), None, {}, follow=False)

    def utime(
        self, path: Any, times: Any = None, *, dir_fd: Any = None, follow_symlinks: bool = True, **ns: Any
    ) -> None:
        """Change the times."""
        rest = {"follow_symlinks": follow_symlinks, **ns}
        told = ("os.utime", path, times, ns.get("ns"))
        name = path if sys.version_info >= (3, 13) else None
        self._change(told, self._raw.utime, path, (times,), dir_fd, rest, name=name)

    def chflags(self, path: Any, flags: Any, follow_symlinks: bool = True) -> None:
        """Change the flags of a file."""
        rest = {"follow_symlinks": follow_symlinks}
        self._change(("os.chflags", path, flags), self._raw.chflags, path, (flags,), None, rest)

    def lchflags(self, path: Any, flags: Any) -> None:
        """Change the flags of a link."""
        self._change(("os.chflags", path, flags), self._raw.lchflags, path, (flags,), None, {}, follow=False)

    def setxattr(self, path: Any, attribute: Any, value: Any, flags: Any = 0, *, follow_symlinks: bool = True) -> None:
        """Set an extended attribute."""
        rest = {"follow_symlinks": follow_symlinks}
        told = ("os.setxattr", path, attribute, value, flags)
        self._change(told, self._raw.setxattr, path, (attribute, value, flags), None, rest)

    def removexattr(self, path: Any, attribute: Any, *, follow_symlinks: bool = True) -> None:
        """Remove an extended attribute."""
        rest = {"follow_symlinks": follow_symlinks}
        self._change(("os.removexattr", path, attribute), self._raw.removexattr, path, (attribute,), None, rest)

    def _change(
        self,
        told: tuple[Any, ...],
        change: Any,
        path: Any,
        values: tuple[Any, ...],
        folder: Any,
        rest: dict[str, Any],
        *,
        follow: bool = True,
        name: Any = ...,
    ) -> None:
        """Change what is known of a file, above."""
        follow = follow and bool(rest.get("follow_symlinks", True))
        numbered = {} if folder is None else {"dir_fd": folder}
        event, _, *more = told
        has_folder = event in ("os.chmod", "os.chown", "os.utime")
        if isinstance(path, int):
            place = self._layers.place_of(path)
            if not place.startswith("/") or self._layers.is_apart(place):  # what is above is apart, by this name
                change(path, *values, **numbered, **rest)
                return
            path = place  # one of the world, that is open to be read
        found = self._told(event, (path, *more), path, folder, folder=has_folder)
        if found is None or found.apart:
            change(path, *values, **numbered, **rest)
            return
        named = given(path) if name is ... else None if name is None else given(name)
        with Naming(named), self._layers.lock:
            found = self._must(self._found(path, folder, follow=follow))
            if found.above is None and found.below is not None and os.geteuid() not in (0, found.below.st_uid):
                raise failure(errno.EPERM)
            # The place has no link left in it but one that is meant itself.
            change(self._layers.up(found), *values, **rest)

    # What all of them need.

    def _told(self, event: str, args: tuple[Any, ...], path: Any, number: Any, *, folder: bool = True) -> Found | None:
        """Find what is meant, and tell of the deed as the interpreter would: with the path that the program gave.

        What then happens above is not listened to. The error that finding may give is for later: it is told first.
        """
        try:
            found = self._found(path, number)
        except OSError:
            found = Found("", "")
        if found is not None and not found.apart:
            first = [given(one) if isinstance(one, os.PathLike) else one for one in args]
            sys.audit(event, *first, *((-1 if number is None else number,) if folder else ()))
        return found

    def _found(self, path: Any, folder: Any, *, follow: bool = False) -> Found | None:
        text = given_text(path)
        if text is None or not isinstance(folder, (int, type(None))):
            return None
        with self._layers.lock:
            return self._layers.walk(self._view.whole(text, folder), follow=follow)

    def _are_ours(self, src: Any, src_folder: Any, dst: Any, dst_folder: Any) -> bool:
        """Say whether a deed with two names is to be done above: unless both are none of ours."""
        apart = []
        for path, folder in ((src, src_folder), (dst, dst_folder)):
            try:
                found = self._found(path, folder)
            except OSError:
                return True
            if found is None:
                return False
            apart.append(found.apart)
        return not all(apart)

    def _is_apart(self, path: Any, folder: Any) -> bool:
        found = self._found(path, folder)
        return found is not None and found.apart

    def _must(self, found: Found | None) -> Found:
        if found is None or (found.facts is None and not found.apart):
            raise failure(errno.ENOENT)
        return found

    def _room_for(self, path: Any, folder: Any, *, slash: bool = False) -> str:
        """Return the place above for something new; OSError where it cannot be."""
        text = os.fsdecode(path)
        bare = text.rstrip("/") if slash else text
        found = self._layers.walk(self._view.whole(bare or "/", folder), follow=False)
        if found.facts is not None:
            raise failure(errno.EEXIST)
        if found.slash:
            raise failure(errno.ENOENT)
        self._may_change(found)
        self._layers.make_way(found.path)
        return self._layers.files + found.path

    def _may_change(self, found: Found) -> None:
        """Raise where the folder that something is in is not the program's to change."""
        parent = self._layers.parent(found)
        if parent.below is not None and not self._raw.access(parent.path, _BOTH):
            raise failure(errno.EACCES)


def _unsigned(*numbers: Any) -> list[Any]:
    """Return ids as the audit event has them, where -1 for none is the largest of all."""
    return [number & 0xFFFFFFFF if isinstance(number, int) else number for number in numbers]
