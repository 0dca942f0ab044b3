"""The words in a tool's name, and which of them are verbs that read or change."""

from __future__ import annotations

import re
from dataclasses import dataclass

READING = re.compile("count|describe|fetch|find|get|list|query|read|retrieve|search|show|view")
# Only what hardly means anything else: where such a word leads a name, a hint that the tool only reads is not believed.
CHANGING = re.compile(
    "add|append|create|delete|deploy|destroy|drop|edit|insert|modify|move|overwrite|patch|publish|purge|remove|rename|"
    "replace|send|set|truncate|update|upload|upsert|write"
)
# Which verb takes back what another did. Only in this direction: what was there before a removal, nothing tells.
UNDOING = {
    "add": ("remove", "delete"),
    "archive": ("unarchive", "restore"),
    "assign": ("unassign",),
    "attach": ("detach",),
    "create": ("delete", "remove", "destroy"),
    "disable": ("enable",),
    "enable": ("disable",),
    "follow": ("unfollow",),
    "grant": ("revoke",),
    "insert": ("delete", "remove"),
    "link": ("unlink",),
    "lock": ("unlock",),
    "pin": ("unpin",),
    "star": ("unstar",),
    "subscribe": ("unsubscribe",),
}
OVERWRITING = frozenset({"edit", "modify", "patch", "put", "replace", "set", "update", "write"})
LOOKING = ("get", "read", "fetch", "show", "describe", "retrieve")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")

Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NameWords:
    """A name as its namespace, which stands before the last `.`, `/` or `:`, and the words of the rest."""

    namespace: str
    words: tuple[str, ...]

    @property
    def key(self) -> Key:
        """What is equal for names that say the same; one or several of a thing count as the same."""
        return self.namespace, tuple(word.removesuffix("s") for word in self.words)

    @property
    def changing_verb(self) -> str | None:
        """The first word that is known to read or to change something, if it changes something."""
        known = (word for word in self.words if READING.fullmatch(word) or CHANGING.fullmatch(word))
        verb = next(known, "")
        return verb if CHANGING.fullmatch(verb) else None

    def with_verb(self, index: int, verb: str) -> NameWords:
        """Return the name with another word at a place."""
        return NameWords(self.namespace, (*self.words[:index], verb, *self.words[index + 1 :]))


def words_of(name: str) -> NameWords:
    """Take a name apart, however it joins its words."""
    last = re.split(r"[./:]", name)[-1]
    return NameWords(name.removesuffix(last), tuple(word.lower() for word in _WORD.findall(last)))
