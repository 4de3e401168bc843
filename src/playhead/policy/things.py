"""What a policy is asked about, in one form whatever it is called, and how patterns are held against it."""

from __future__ import annotations

from typing import NamedTuple

from playhead.policy import commands, hosts, paths, pushes, texts
from playhead.policy.hosts import Host

UNKNOWN_MODEL = "?"  # of a request whose body is made while it is sent, or cannot be read


class Thing(NamedTuple):
    """A resource in its one form."""

    name: str
    capability: str
    root: str  # the folder that relative paths are in
    search: str = ""  # where programs were looked for when the policy was read
    host: Host | None = None
    names: tuple[str, ...] = ()  # of a file: those it has on the way to its one form
    is_folder: bool = False
    has_other_names: bool = False

    def fits(self, pattern: str, *, any_case: bool) -> bool:
        """Say whether a pattern means it; in any case where it forbids."""
        if self.names:
            if self.capability != "net.connect":
                return self._is_at(pattern, any_case)
            is_path = pattern.startswith(hosts.UNIX)
            return pattern == "*" or (is_path and self._is_at(pattern.removeprefix(hosts.UNIX), any_case))
        if self.host is not None:
            return hosts.fits_host(pattern, self.host, forbids=any_case)
        if self.capability == "process.exec":
            return commands.fits_command(pattern, self.name, root=self.root, search=self.search, forbids=any_case)
        if self.capability == "git.push" and any_case and self.name == pushes.UNKNOWN:
            return True  # it may go where it is forbidden to
        if self.capability == "model.use":  # `openai/gpt-5`: with or without who provides it
            names = (self.name, self.name.partition("/")[2])
            if any_case and names[1] == UNKNOWN_MODEL:
                return True  # it may be the one that is forbidden
            return any(texts.fits_text(pattern, name, any_case=any_case) for name in names if name)
        return texts.fits_text(pattern, self.name, any_case=any_case)

    def _is_at(self, pattern: str, any_case: bool) -> bool:
        if any_case:
            return any(paths.fits_path(pattern, name, self.root, any_case=True) for name in self.names)
        return paths.fits_path(pattern, self.names[-1], self.root, any_case=False) or (
            self.is_folder and paths.means_all_in(pattern, self.name, self.root)
        )

    def unheld_by(self, pattern: str) -> str | None:
        """Say why a command is denied although a pattern allows it: a policy does not hold in what it starts."""
        found = commands.unheld(commands.words_of(self.name)) if self.capability == "process.exec" else None
        if found is None or commands.names_option(pattern, found[1]):
            return None
        program, by = found
        return (
            f"{program} {by} does not load Playhead, so no policy would hold in it; "
            f"start it without, or name the option in what is allowed"
            if by.startswith("-")
            else f"{program} does not load Playhead without variables that {by} takes from it, so no policy would "
            f"hold in it; name {by} in what is allowed, if that is meant"
        )


def thing_of(capability: str, resource: str, root: str, search: str) -> Thing:
    """Return what a resource is in its one form; a file has more to be looked at, and is made where it is decided."""
    if capability == "process.exec":
        return Thing(commands.command_of(commands.words_of(resource)), capability, root, search)
    if capability == "net.connect" and resource.startswith(f"{hosts.UNIX}/"):
        names = tuple(paths.names_of(resource.removeprefix(hosts.UNIX), root))
        return Thing(hosts.UNIX + names[-1], capability, root, names=names)
    if capability == "net.connect" and not resource.startswith(hosts.UNIX):
        host = hosts.host_of(resource)
        return Thing(str(host), capability, root, host=host)
    return Thing(resource, capability, root)
