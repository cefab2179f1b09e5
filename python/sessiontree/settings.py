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
from typing import TYPE_CHECKING, Any, Final, cast

from sessiontree._jsvalues import ABSENT, described, member
from sessiontree._settingschecks import CHECKS, OBJECT, TOKENS, Check
from sessiontree._settingslayers import Layer, Scope, merge_settings, migrate_settings
from sessiontree.exceptions import SettingsError
from sessiontree.paths import agent_dir as default_agent_dir
from sessiontree.paths import normalize_path, resolve_path

if TYPE_CHECKING:
    import os

KeyPath = str | Sequence[str]
"""A setting: ``"compaction.reserveTokens"``, or its parts where a key itself holds a dot."""

SETTINGS_FILE: Final = "settings.json"
PROJECT_FOLDER: Final = ".pi"

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


class SettingsManager:
    """Reads and changes settings.

    Example:
        >>> from sessiontree import SettingsManager
        >>> settings = SettingsManager.in_memory({"compaction": {"keepRecentTokens": 5000}})
        >>> settings.get_compaction_settings()
        {'enabled': True, 'reserveTokens': 16384, 'keepRecentTokens': 5000}
    """

    def __init__(self, global_layer: Layer, project_layer: Layer, *, project_trusted: bool) -> None:
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
            Layer("global", folder / SETTINGS_FILE),
            Layer("project", project),
            project_trusted=project_trusted,
        )

    @classmethod
    def in_memory(
        cls, settings: Mapping[str, Any] | None = None, *, project_trusted: bool = True
    ) -> SettingsManager:
        """Settings without files; the given ones are the global layer."""
        first = migrate_settings(copy.deepcopy(dict(settings or {})))
        return cls(Layer("global", None, first), Layer("project", None), project_trusted=project_trusted)

    # ---- layers

    def reload(self) -> None:
        """Read the files again; a file that has become unusable leaves its layer as it was."""
        self._read(self._global)
        if self._trusted:
            self._read(self._project)
        self._merge()

    def _read(self, layer: Layer) -> None:
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
        _check_new(parts, value)
        self._change(parts, value, scope)

    def unset(self, key: KeyPath, *, scope: Scope = "global") -> None:
        """Take one setting out of a file, so that the layer below or the default counts again.

        Raises:
            SettingsError: the file is broken, or the project is not trusted.
        """
        self._change(_parts(key), ABSENT, scope)

    def _change(self, parts: tuple[str, ...], value: Any, scope: Scope) -> None:
        if scope not in ("global", "project"):
            raise ValueError(f"scope must be 'global' or 'project', not {scope!r}")
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
            self._check(("compaction", field), ordinary, TOKENS)
        chosen = ABSENT
        if model is not None:
            name = f"{model.get('provider')}/{model.get('id')}"
            entry = member(member(compaction, "modelOverrides"), name)
            parts = ("compaction", "modelOverrides", name)
            if entry is not ABSENT:
                self._check(parts, entry, OBJECT)
            chosen = member(entry, field)
            if chosen is not ABSENT:
                self._check((*parts, field), chosen, TOKENS)
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
        check = CHECKS.get(_kind(parts))
        if check is not None:
            self._check(parts, value, check)
        return value

    def _check(self, parts: tuple[str, ...], value: Any, check: Check) -> None:
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


def _parts(key: KeyPath) -> tuple[str, ...]:
    parts = tuple(key.split(".")) if isinstance(key, str) else tuple(key)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(f"a setting is named by keys that are not empty, not {key!r}")
    return parts


def _check_new(parts: tuple[str, ...], value: Any) -> None:
    """Refuse a value that does not fit, also inside a section, and one in the place of a section."""
    check = CHECKS.get(_kind(parts))
    is_section = isinstance(_lookup(SETTINGS_DEFAULTS, parts), Mapping)
    if check is None and (is_section or parts == ("compaction", "modelOverrides")):
        check = OBJECT
    if check is not None and not check.accepts(value):
        raise SettingsError(
            f"cannot set {_shown(parts)} to {described(value)}: must be {check.wanted}",
            key=_shown(parts),
            value=value,
        )
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_new((*parts, str(key)), inner)


def _kind(parts: tuple[str, ...]) -> str:
    """The name in `CHECKS`: one for all models."""
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
