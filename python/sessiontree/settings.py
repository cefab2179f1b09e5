"""Layered settings: global, of the project, and overrides of the running program.

The global layer is ``<agent folder>/settings.json``, the project's ``<cwd>/.pi/settings.json``; that one
counts only if the project is trusted. Later layers win: objects are merged key by key, everything else is
replaced. pi reads and writes the same files, so a change here

* touches one key and leaves all others, also unknown ones, and their order alone;
* is made under pi's own lock (a folder ``settings.json.lock``, mkdir as proper-lockfile does it) and on the
  text as it is then, so that nobody's change is lost;
* replaces the file in one step: a reader sees the old text or the new one.

A file that cannot be parsed counts as empty, is reported (`SettingsManager.drain_errors`) and is never
written to. Values are checked when they are read and when they are set.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from sessiontree import _settingsfile
from sessiontree._jsvalues import ABSENT, described, member
from sessiontree.exceptions import SettingsError
from sessiontree.jsontext import loads
from sessiontree.paths import agent_dir as default_agent_dir
from sessiontree.paths import normalize_path, resolve_path

if TYPE_CHECKING:
    import os

Scope = Literal["global", "project"]
KeyPath = str | Sequence[str]
"""A setting: ``"compaction.reserveTokens"``, or its parts where a key itself holds a dot."""

SETTINGS_FILE: Final = "settings.json"
PROJECT_FOLDER: Final = ".pi"
MAX_SAFE_INTEGER: Final = 2**53 - 1

SETTINGS_DEFAULTS: Final[Mapping[str, Any]] = {
    "transport": "auto",
    "sessionShareDestination": "auto",
    "steeringMode": "one-at-a-time",
    "followUpMode": "one-at-a-time",
    "compaction": {"enabled": True, "reserveTokens": 16384, "keepRecentTokens": 20000},
    "branchSummary": {"reserveTokens": 16384, "skipPrompt": False},
    "retry": {
        "enabled": True,
        "maxRetries": 3,
        "baseDelayMs": 2000,
        "maxAgentDelayMs": 60000,
        "provider": {"maxRetryDelayMs": 60000},
    },
    "hideThinkingBlock": False,
    "showCacheMissNotices": False,
    "quietStartup": False,
    "defaultProjectTrust": "ask",
    "collapseChangelog": False,
    "enableInstallTelemetry": True,
    "enableAnalytics": False,
    "enableSkillCommands": True,
    "terminal": {
        "showImages": True,
        "imageWidthCells": 60,
        "clearOnShrink": False,
        "showTerminalProgress": False,
    },
    "images": {"autoResize": True, "blockImages": False},
    "doubleEscapeAction": "tree",
    "treeFilterMode": "default",
    "editorPaddingX": 0,
    "outputPad": 1,
    "autocompleteMaxVisible": 5,
    "markdown": {"codeBlockIndent": "  ", "mermaid": "streaming"},
    "warnings": {"anthropicExtraUsage": True},
    "codemode": {"mode": "on", "inlineBudget": 3000},
    "cacheWarming": "idle",
    "tuiMode": "fullscreen",
    "fullscreenExitOutput": "transcript",
    "fullscreenScrollbar": "auto",
    "fullscreenCopyOnSelect": True,
    "fullscreenWheelScrollLines": "auto",
}
"""What pi 1.6.0 takes for settings that no layer holds."""


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """A layer that could not be read.

    Attributes:
        scope: ``global`` or ``project``.
        path: the file, None in memory.
        error: what is wrong with it.
    """

    scope: Scope
    path: str | None
    error: SettingsError


class _Layer:
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
            changed = _with(current, parts, value, str(self.path))
            _settingsfile.replace(self.path, _settingsfile.pretty(changed))
        self.settings = changed


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
    return migrate_settings(value)


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


class SettingsManager:
    """Reads and changes settings.

    Example:
        >>> from sessiontree import SettingsManager
        >>> settings = SettingsManager.in_memory({"compaction": {"keepRecentTokens": 5000}})
        >>> settings.get_compaction_settings()
        {'enabled': True, 'reserveTokens': 16384, 'keepRecentTokens': 5000}
    """

    def __init__(self, global_layer: _Layer, project_layer: _Layer, *, project_trusted: bool) -> None:
        """Use `create` or `in_memory`."""
        self._global = global_layer
        self._project = project_layer
        self._trusted = project_trusted
        self._overrides: dict[str, Any] = {}
        self._problems: list[SettingsProblem] = []
        self._merged: dict[str, Any] = {}
        self.reload()

    @classmethod
    def create(
        cls,
        cwd: str | os.PathLike[str],
        agent_dir: str | os.PathLike[str] | None = None,
        *,
        project_trusted: bool = True,
    ) -> SettingsManager:
        """Read the settings of a working directory.

        Args:
            cwd: the project.
            agent_dir: ``PI_CODING_AGENT_DIR`` or ``~/.pi/agent`` if left out.
            project_trusted: whether the project's own file counts.
        """
        folder = Path(resolve_path(agent_dir if agent_dir is not None else default_agent_dir()))
        project = Path(resolve_path(cwd)) / PROJECT_FOLDER / SETTINGS_FILE
        return cls(
            _Layer("global", folder / SETTINGS_FILE),
            _Layer("project", project),
            project_trusted=project_trusted,
        )

    @classmethod
    def in_memory(
        cls, settings: Mapping[str, Any] | None = None, *, project_trusted: bool = True
    ) -> SettingsManager:
        """Settings without files; the given ones are the global layer."""
        first = migrate_settings(copy.deepcopy(dict(settings or {})))
        return cls(_Layer("global", None, first), _Layer("project", None), project_trusted=project_trusted)

    # ---- layers

    def reload(self) -> None:
        """Read the files again; a file that has become unusable leaves its layer as it was."""
        self._read(self._global)
        if self._trusted:
            self._read(self._project)
        self._merge()

    def _read(self, layer: _Layer) -> None:
        layer.read()
        if layer.error is not None:
            path = None if layer.path is None else str(layer.path)
            self._problems.append(SettingsProblem(layer.scope, path, layer.error))

    def _merge(self) -> None:
        layers = (self._project.settings if self._trusted else {}, self._overrides)
        self._merged = self._global.settings
        for layer in layers:
            self._merged = merge_settings(self._merged, layer)

    def get_settings(self) -> dict[str, Any]:
        """What the layers hold together, without defaults; a copy."""
        return copy.deepcopy(self._merged)

    def get_global_settings(self) -> dict[str, Any]:
        """The global layer; a copy."""
        return copy.deepcopy(self._global.settings)

    def get_project_settings(self) -> dict[str, Any]:
        """The project's layer, empty if the project is not trusted; a copy."""
        return copy.deepcopy(self._project.settings) if self._trusted else {}

    def is_project_trusted(self) -> bool:
        """Does the project's layer count?"""
        return self._trusted

    def set_project_trusted(self, trusted: bool) -> None:
        """Let the project's layer count from now on, or no longer."""
        if trusted == self._trusted:
            return
        self._trusted = trusted
        if trusted:
            self._read(self._project)
        self._merge()

    def apply_overrides(self, overrides: Mapping[str, Any]) -> None:
        """Lay settings over all files; they are never written."""
        self._overrides = merge_settings(self._overrides, copy.deepcopy(dict(overrides)))
        self._merge()

    def drain_errors(self) -> list[SettingsProblem]:
        """The layers that could not be read since the last call."""
        problems, self._problems = self._problems, []
        return problems

    def flush(self) -> None:
        """Nothing is ever waiting: changes are on disk when their method returns."""

    # ---- any setting

    def get(self, key: KeyPath) -> Any:
        """The value of a setting: of the topmost layer that has it, else the default, else None.

        Raises:
            SettingsError: a number, or a switch, that is none; names file, key and value.

        Example:
            >>> from sessiontree import SettingsManager
            >>> SettingsManager.in_memory().get("compaction.reserveTokens")
            16384
        """
        parts = _parts(key)
        value = _lookup(self._merged, parts)
        value = _lookup(SETTINGS_DEFAULTS, parts) if value is ABSENT else self._checked(parts, value)
        return None if value is ABSENT else copy.deepcopy(value)

    def set(self, key: KeyPath, value: Any, *, scope: Scope = "global") -> None:
        """Change one setting in a file; what others wrote in the meantime stays.

        Raises:
            SettingsError: the value does not fit, the file is broken (it is left alone), or the project
                is not trusted.
        """
        parts = _parts(key)
        check = _CHECKS.get(_kind(parts))
        if check is not None and not check.accepts(value):
            raise SettingsError(
                f"cannot set {_shown(parts)} to {described(value)}: must be {check.wanted}",
                key=_shown(parts),
                value=value,
            )
        self._change(parts, value, scope)

    def unset(self, key: KeyPath, *, scope: Scope = "global") -> None:
        """Take one setting out of a file, so that the layer below or the default counts again.

        Raises:
            SettingsError: the file is broken, or the project is not trusted.
        """
        self._change(_parts(key), ABSENT, scope)

    def _change(self, parts: tuple[str, ...], value: Any, scope: Scope) -> None:
        if scope == "project" and not self._trusted:
            text = "the project is not trusted, its settings are not changed"
            raise SettingsError(text, path=str(self._project.path), key=".".join(parts))
        layer = self._global if scope == "global" else self._project
        layer.change(parts, value)
        self._merge()

    # ---- compaction and branch summaries

    def get_compaction_enabled(self) -> bool:
        """May contexts be compacted without being asked?"""
        return bool(self._or_default("compaction", "enabled"))

    def set_compaction_enabled(self, enabled: bool) -> None:
        """Switch automatic compaction on or off, in the global file."""
        self.set("compaction.enabled", enabled)

    def get_compaction_reserve_tokens(self, model: Mapping[str, Any] | None = None) -> int | float:
        """Tokens to be left free for the answer."""
        return self._compaction_tokens("reserveTokens", model)

    def get_compaction_keep_recent_tokens(self, model: Mapping[str, Any] | None = None) -> int | float:
        """Tokens of the newest messages that a compaction keeps word for word."""
        return self._compaction_tokens("keepRecentTokens", model)

    def get_compaction_settings(self, model: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What decides over compactions: ``enabled``, ``reserveTokens``, ``keepRecentTokens``.

        Args:
            model: its ``provider`` and ``id`` select an entry of ``compaction.modelOverrides``.

        Raises:
            SettingsError: a number is no integer from 0 to 2^53 - 1, or an entry is no object.
        """
        return {
            "enabled": self.get_compaction_enabled(),
            "reserveTokens": self.get_compaction_reserve_tokens(model),
            "keepRecentTokens": self.get_compaction_keep_recent_tokens(model),
        }

    def _compaction_tokens(self, field: str, model: Mapping[str, Any] | None) -> int | float:
        compaction = self._merged.get("compaction")
        ordinary = member(compaction, field)
        if ordinary is not ABSENT:
            self._check(("compaction", field), ordinary, _TOKENS)
        chosen = ABSENT
        if model is not None:
            name = f"{model.get('provider')}/{model.get('id')}"
            entry = member(member(compaction, "modelOverrides"), name)
            parts = ("compaction", "modelOverrides", name)
            if entry is not ABSENT:
                self._check(parts, entry, _OBJECT)
            chosen = member(entry, field)
            if chosen is not ABSENT:
                self._check((*parts, field), chosen, _TOKENS)
        default = SETTINGS_DEFAULTS["compaction"][field]
        value: Any = next((one for one in (chosen, ordinary) if one is not ABSENT), default)
        return cast("int | float", value)

    def get_branch_summary_settings(self) -> dict[str, Any]:
        """What decides over branch summaries: ``reserveTokens`` and ``skipPrompt``."""
        return {
            "reserveTokens": self._or_default("branchSummary", "reserveTokens"),
            "skipPrompt": self.get_branch_summary_skip_prompt(),
        }

    def get_branch_summary_skip_prompt(self) -> bool:
        """Is the user not to be asked whether a branch shall be summarised?"""
        return bool(self._or_default("branchSummary", "skipPrompt"))

    # ---- retries, session folder, model

    def get_retry_enabled(self) -> bool:
        """Are failed requests repeated?"""
        return bool(self._or_default("retry", "enabled"))

    def set_retry_enabled(self, enabled: bool) -> None:
        """Switch retries on or off, in the global file."""
        self.set("retry.enabled", enabled)

    def get_retry_settings(self) -> dict[str, Any]:
        """How failed requests are repeated, for `RetryPolicy.from_settings`."""
        names = ("enabled", "maxRetries", "baseDelayMs", "maxAgentDelayMs")
        return {name: self._or_default("retry", name) for name in names}

    def get_session_dir(self) -> str | None:
        """The folder for sessions, with ``~`` expanded; None if none is set."""
        folder = self._merged.get("sessionDir")
        return normalize_path(folder) if isinstance(folder, str) and folder else None

    def get_default_provider(self) -> str | None:
        """The provider of new sessions."""
        return self._text("defaultProvider")

    def get_default_model(self) -> str | None:
        """The model of new sessions."""
        return self._text("defaultModel")

    def set_default_model_and_provider(self, provider: str, model_id: str) -> None:
        """Choose the model of new sessions, in the global file."""
        self.set("defaultProvider", provider)
        self.set("defaultModel", model_id)

    def _text(self, key: str) -> str | None:
        value = self._merged.get(key)
        return value if isinstance(value, str) else None

    def _or_default(self, group: str, name: str) -> Any:
        """A checked value; null counts as left out."""
        value = member(self._merged.get(group), name)
        if value is ABSENT or value is None:
            return SETTINGS_DEFAULTS[group][name]
        return self._checked((group, name), value)

    # ---- checks

    def _checked(self, parts: tuple[str, ...], value: Any) -> Any:
        check = _CHECKS.get(_kind(parts))
        if check is not None:
            self._check(parts, value, check)
        return value

    def _check(self, parts: tuple[str, ...], value: Any, check: _Check) -> None:
        if check.accepts(value):
            return
        path = self._origin(parts)
        where = "" if path is None else f' in "{path}"'
        text = f"setting {_shown(parts)} is {described(value)}, but must be {check.wanted}{where}"
        raise SettingsError(text, path=path, key=_shown(parts), value=value)

    def _origin(self, parts: tuple[str, ...]) -> str | None:
        """The file that a value comes from."""
        if _lookup(self._overrides, parts) is not ABSENT:
            return None
        in_project = self._trusted and _lookup(self._project.settings, parts) is not ABSENT
        layer = self._project if in_project else self._global
        return None if layer.path is None else str(layer.path)


@dataclass(frozen=True, slots=True)
class _Check:
    """What a setting may be."""

    wanted: str
    types: tuple[type, ...]
    whole: bool = False

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))
        if int not in self.types or not 0 <= value <= MAX_SAFE_INTEGER:
            return False
        return not self.whole or value == int(value)


_TOKENS: Final = _Check(f"an integer from 0 to {MAX_SAFE_INTEGER}", (int,), whole=True)
_NUMBER: Final = _Check(f"a number from 0 to {MAX_SAFE_INTEGER}", (int,))
_SWITCH: Final = _Check("true or false", (bool,))
_OBJECT: Final = _Check("an object", (dict,))
_TEXT: Final = _Check("a text", (str,))

_CHECKS: Final[Mapping[str, _Check]] = {
    "compaction.enabled": _SWITCH,
    "compaction.reserveTokens": _TOKENS,
    "compaction.keepRecentTokens": _TOKENS,
    "compaction.modelOverrides.*": _OBJECT,
    "compaction.modelOverrides.*.reserveTokens": _TOKENS,
    "compaction.modelOverrides.*.keepRecentTokens": _TOKENS,
    "branchSummary.reserveTokens": _TOKENS,
    "branchSummary.skipPrompt": _SWITCH,
    "retry.enabled": _SWITCH,
    "retry.maxRetries": _TOKENS,
    "retry.baseDelayMs": _NUMBER,
    "retry.maxAgentDelayMs": _NUMBER,
    "retry.provider.maxRetryDelayMs": _NUMBER,
    "defaultProvider": _TEXT,
    "defaultModel": _TEXT,
    "sessionDir": _TEXT,
}


def _parts(key: KeyPath) -> tuple[str, ...]:
    parts = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(f"a setting is named by keys that are not empty, not {key!r}")
    return parts


def _kind(parts: tuple[str, ...]) -> str:
    """The name in `_CHECKS`: one for all models."""
    if parts[:2] == ("compaction", "modelOverrides") and len(parts) > 2:
        parts = (*parts[:2], "*", *parts[3:])
    return ".".join(parts)


def _shown(parts: tuple[str, ...]) -> str:
    """A key as errors show it: the model's name in brackets, because it may hold dots."""
    if parts[:2] == ("compaction", "modelOverrides") and len(parts) > 2:
        return ".".join((f'compaction.modelOverrides["{parts[2]}"]', *parts[3:]))
    return ".".join(parts)


def _lookup(settings: Any, parts: Sequence[str]) -> Any:
    for part in parts:
        settings = member(settings, part)
    return settings
