"""The steps of an installation, a removal and a repair, in the order that loses nothing when one fails."""

from __future__ import annotations

from pypto_op import __version__
from pypto_op.bundle_files import bundle_root
from pypto_op.errors import ContractError
from pypto_op.install import claude_client
from pypto_op.install.edits import put_into_settings, put_lines
from pypto_op.install.render import Plan, render
from pypto_op.install.target import Changes, Target, uninstaller

GITIGNORE = {
    "claude": ["/.pypto-op/", "/.claude/settings.local.json"],
    "opencode": [
        "/.pypto-op/",
        "/.opencode/pypto-op/",
        "/.opencode/plugins/pypto-op.js",
        "/.opencode/agents/pypto-op-*.md",
        "/.opencode/agents/triton-op-*.md",
        "/.opencode/skills/pypto-*/",
        "/.opencode/skills/kernel-verifier/",
    ],
}
"""What an installation leaves in the target: it names this machine's paths, so it is nobody else's."""


def own_place() -> tuple[str, str]:
    """Return this bundle's version and folder."""
    return __version__, str(bundle_root())


def look(place: Target, chosen: list[str], *, files_only: bool) -> Changes:
    """Say what an installation would change; everything that could refuse it is asked here.

    Raises:
        ContractError: files of the user's own are in the way, or the client could not read its settings.
        InfraError: the client is not installed.
    """
    if not files_only:
        for client in chosen:
            claude_client.find(client)
    found = place.changes(_plan(place, [*place.harnesses, *chosen]))
    if "claude" in chosen:
        _refuse_own_agents(place)
        if not files_only:
            _settings(place)
    return found


def add(place: Target, chosen: list[str], *, files_only: bool, gitignore: bool) -> None:
    """Install the chosen harnesses, beside those that are there.

    Raises:
        ContractError: as `look`.
        InfraError: the target cannot be written, or the client refuses.
    """
    found = look(place, chosen, files_only=files_only)
    place.check_writable()
    harnesses = sorted({*place.harnesses, *chosen})
    former = place.manifest.get("marketplace")
    changed = found.write or found.remove or harnesses != place.harnesses
    if changed or own_place() != (place.manifest.get("version"), place.manifest.get("bundle")):
        place.apply(_plan(place, harnesses), found, harnesses, bundle_root(), _marketplace(place))
    if gitignore:
        _ignore(place, harnesses)
    if "claude" in chosen and not files_only:
        if former and former != _marketplace(place):  # the workspace has moved
            claude_client.unregister(place.root, former)
        _register(place)


def look_at_removal(place: Target, chosen: list[str]) -> Changes:
    """Say what a removal of the chosen harnesses changes."""
    left = [harness for harness in place.harnesses if harness not in chosen]
    return place.changes(_plan(place, left)) if left else place.removal()


def remove(place: Target, chosen: list[str], *, files_only: bool) -> None:
    """Take the chosen harnesses out.

    Raises:
        ContractError: a file of the user's own cannot be read any more.
        InfraError: the target cannot be written.
    """
    found = look_at_removal(place, chosen)
    left = [harness for harness in place.harnesses if harness not in chosen]
    place.check_writable()
    if "claude" in chosen:
        _unregister(place, files_only=files_only)
    if left:
        place.apply(_plan(place, left), found, left, bundle_root(), _marketplace(place))
        if ".gitignore" in place.edits:
            place.restore(".gitignore", place.original(".gitignore"))
            _ignore(place, left)
    else:
        if ".gitignore" in place.edits:
            place.restore(".gitignore", place.original(".gitignore"))
        place.uninstall(found)


def _plan(place: Target, harnesses: list[str]) -> Plan:
    plan: Plan = uninstaller(bundle_root())
    for harness in dict.fromkeys(harnesses):
        plan |= render(harness, marketplace=_marketplace(place))
    return plan


def _marketplace(place: Target) -> str:
    return claude_client.marketplace_name(place.root)


def _settings(place: Target) -> tuple[bytes | None, bytes]:
    """Return the settings file without our entries and with them; refuse one that the client cannot read."""
    path = claude_client.SETTINGS
    there = place.root / path
    if there.exists() and not there.is_file():  # a pipe would wait for its reader, a device take all and keep nothing
        raise ContractError("is no regular file", file=there, remedy="move it away, or add --files-only; nothing was written")
    before = place.original(path)
    after, _ = put_into_settings(place.root / path, path, before, claude_client.entries(place.root, _marketplace(place)))
    return before, after


def _register(place: Target) -> None:
    path = claude_client.SETTINGS
    before, _ = _settings(place)
    after, edit = put_into_settings(place.root / path, path, before, claude_client.entries(place.root, _marketplace(place)))
    there = place.root / path
    if place.registered and place.edits.get(path) == edit and there.is_file() and there.read_bytes() == after:
        return
    place.edit(edit, before, after)  # first, so that an interruption leaves what can be undone
    place.note(registered=True)
    try:
        claude_client.register(place.root, _marketplace(place))
    except BaseException:
        place.restore(path, before)
        place.note(registered=False)
        raise
    place.edit(edit, before, after)  # the client has laid the file out anew


def _unregister(place: Target, *, files_only: bool) -> None:
    path = claude_client.SETTINGS
    before = place.original(path)
    if not files_only and place.registered:
        claude_client.unregister(place.root, place.manifest["marketplace"])
    if path in place.edits:
        place.restore(path, before)
    place.note(registered=False)


def _ignore(place: Target, harnesses: list[str]) -> None:
    lines = list(dict.fromkeys(line for harness in harnesses for line in GITIGNORE[harness]))
    if ".gitignore" in place.edits:
        place.restore(".gitignore", place.original(".gitignore"))
    path = place.root / ".gitignore"
    before = path.read_bytes() if path.is_file() else None
    done = put_lines(".gitignore", before, lines)
    if done:
        place.edit(done[1], before, done[0])


def _refuse_own_agents(place: Target) -> None:
    """Refuse agents of the team's names in the project: the guards could not tell them from the team's."""
    from pypto_op.bundle.agents import load_agents

    own = [name for agent in load_agents() if (place.root / (name := f".claude/agents/{agent.name}.md")).exists()]
    if own:
        raise ContractError(
            f"agents of the same name are there: {', '.join(own)}", file=place.root, remedy="rename them; nothing was written"
        )
