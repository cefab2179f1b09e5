"""The layers under `sessiontree.settings`: what a file holds, old names in it, one layer over another."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from sessiontree import _settingsfile
from sessiontree._jsvalues import ABSENT, described
from sessiontree.exceptions import SettingsError
from sessiontree.jsontext import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

Scope = Literal["global", "project"]
_DEEPEST: Final = 100
"""Levels of nesting that settings may have: far more than anybody writes, far fewer than Python can copy."""


class Layer:
    """The settings of one scope, in a file or only in memory."""

    def __init__(self, scope: Scope, path: Path | None, settings: dict[str, Any] | None = None) -> None:
        self.scope = scope
        self.path = path
        self.settings: dict[str, Any] = settings or {}
        self.error: SettingsError | None = None

    def read(self) -> None:
        """Take in the file as it is now; unless it cannot be used, then keep what is here."""
        if self.path is None:
            return
        try:
            self.settings = _parsed(self.path, _settingsfile.read_text(self.path, _is_json))
            self.error = None
        except SettingsError as error:
            self.error = error
        except OSError as error:
            self.error = SettingsError(f"cannot read settings: {error}", path=str(self.path))

    def change(self, parts: Sequence[str], value: Any) -> None:
        """Set one key, or remove it with `ABSENT`, in what the file holds at this moment."""
        if self.error is not None:
            text = f"settings cannot be changed while the file is broken: {self.error}"
            raise SettingsError(text, path=self.error.path, key=".".join(parts))
        if self.path is None:
            self.settings = _with(self.settings, parts, value, None)
            return
        with _settingsfile.locked(self.path):
            current = _parsed(self.path, _settingsfile.read_text(self.path, _is_json), strict=True)
            _refuse_broken_text(self.path)
            changed = _with(current, parts, value, str(self.path))
            _settingsfile.replace(self.path, _settingsfile.pretty(changed))
        self.settings = changed


def _refuse_broken_text(path: Path) -> None:
    """What is no UTF-8 is read as pi reads it, with replacements; written back it would be lost."""
    try:
        path.read_bytes().decode()
    except FileNotFoundError:
        return
    except UnicodeDecodeError as error:
        text = f'settings cannot be changed while "{path}" is not UTF-8 (byte {error.start}); nothing was changed'
        raise SettingsError(text, path=str(path)) from None


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


def _parsed(path: Path, text: str, *, strict: bool = False) -> dict[str, Any]:
    """The settings in a file's text; empty for none.

    Args:
        path: for errors.
        text: the whole file.
        strict: refuse also what pi reads as no settings, because a change would overwrite it.
    """
    text = text.removeprefix("\ufeff")
    if not text:
        return {}
    try:
        value = loads(text)
    except ValueError as error:
        raise SettingsError(f'"{path}" is no JSON: {error}', path=str(path)) from error
    if isinstance(value, list) and not strict:
        return {}
    if not isinstance(value, dict):
        text = f'"{path}" must hold an object, not {described(value)}'
        raise SettingsError(text, path=str(path), value=value)
    if _depth_exceeds(value, _DEEPEST):
        raise SettingsError(f'"{path}" is nested deeper than {_DEEPEST} levels', path=str(path))
    return migrate_settings(value)


def _depth_exceeds(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most + 1):
        level = [inner for outer in level for inner in _members(outer)]
        if not level:
            return False
    return True


def _members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _with(settings: dict[str, Any], parts: Sequence[str], value: Any, path: str | None) -> dict[str, Any]:
    """A copy of the settings in which one key differs."""
    changed = copy.deepcopy(settings)
    holder = changed
    for depth, part in enumerate(parts[:-1]):
        inner = holder.setdefault(part, {}) if value is not ABSENT else holder.get(part, {})
        if not isinstance(inner, dict):
            key = ".".join(parts[: depth + 1])
            text = f'cannot set "{".".join(parts)}": "{key}" is {described(inner)}, no object'
            raise SettingsError(text, path=path, key=key, value=inner)
        holder = inner
    if value is ABSENT:
        holder.pop(parts[-1], None)
    else:
        holder[parts[-1]] = copy.deepcopy(value)
    return changed


def migrate_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Move what stands under names of older versions; changes and returns the dict.

    ``queueMode`` becomes ``steeringMode``, ``websockets`` ``transport``, a ``skills`` object the list of its
    folders, ``retry.maxDelayMs`` ``retry.provider.maxRetryDelayMs``. What already has the new name wins.
    """
    if "queueMode" in settings and "steeringMode" not in settings:
        settings["steeringMode"] = settings.pop("queueMode")
    if "transport" not in settings and isinstance(settings.get("websockets"), bool):
        settings["transport"] = "websocket" if settings.pop("websockets") else "sse"
    if isinstance(settings.get("skills"), dict):
        _migrate_skills(settings)
    if isinstance(settings.get("retry"), dict):
        _migrate_retry(settings["retry"])
    return settings


def _migrate_skills(settings: dict[str, Any]) -> None:
    old = settings["skills"]
    if "enableSkillCommands" in old:
        settings.setdefault("enableSkillCommands", old["enableSkillCommands"])
    folders = old.get("customDirectories")
    if isinstance(folders, list) and folders:
        settings["skills"] = folders
    else:
        del settings["skills"]


def _migrate_retry(retry: dict[str, Any]) -> None:
    delay = retry.get("maxDelayMs")
    provider = retry.get("provider")
    known = provider if isinstance(provider, dict) else {}
    if (
        isinstance(delay, (int, float))
        and not isinstance(delay, bool)
        and known.get("maxRetryDelayMs") is None
    ):
        retry["provider"] = {**known, "maxRetryDelayMs": delay}
    retry.pop("maxDelayMs", None)


def merge_settings(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one layer over another.

    Objects are merged key by key, everything else is replaced. Only ``defaultTools`` is special: a list of
    nothing but ``+name`` and ``-name`` is added to the list below.

    Example:
        >>> from sessiontree.settings import merge_settings
        >>> merge_settings({"a": {"x": 1}, "b": [1]}, {"a": {"y": 2}, "b": [2]})
        {'a': {'x': 1, 'y': 2}, 'b': [2]}
    """
    merged = _merged(base, overrides)
    below, above = base.get("defaultTools"), overrides.get("defaultTools")
    if isinstance(below, list) and isinstance(above, list) and all(map(_is_tool_change, above)):
        merged["defaultTools"] = [*below, *above]
    return merged


def _merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return merged


def _is_tool_change(tool: Any) -> bool:
    return isinstance(tool, str) and tool.startswith(("+", "-"))
