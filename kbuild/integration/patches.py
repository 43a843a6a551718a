# SPDX-License-Identifier: GPL-2.0
"""Patches: applied, undone and recognised, all in memory."""

import contextlib
import re
from pathlib import Path

from .common import KBUILD, Refused


class Mismatch(Exception):
    """A hunk found no place."""

    def __init__(self, patch, path, number, hunk, why):
        super().__init__(f"{patch}: {path}: hunk {number} ({hunk.header}): {why}")


class Hunk:
    """One hunk: what it expects at `start` (from 0), and what it leaves there."""

    def __init__(self, header, start, old, new):
        self.header, self.start, self.old, self.new = header, start, old, new

    def reversed(self, shift):
        return Hunk(self.header, self.start + shift, self.new, self.old)

    def why_not_at(self, lines, at):
        """The first line that differs, for people."""
        for offset, want in enumerate(self.old):
            have = lines[at + offset] if at + offset < len(lines) else None
            if have != want:
                found = "the end of the file" if have is None else repr(have.decode(errors="replace"))
                return f"line {at + offset + 1}: expected {want.decode(errors='replace')!r}, found {found}"
        return "its lines precede those of an earlier hunk"


class Patch:
    """A mail as `git format-patch` writes it: hunks by path."""

    def __init__(self, name, data):
        self.name, self.data = name, data
        self.hunks = {}
        self._parse(data.split(b"\n"))
        if not self.hunks:
            raise Refused(f"{name}: no hunk in it")

    def _parse(self, lines):
        path, i = None, 0
        while i < len(lines):
            line = lines[i]
            if line.startswith(b"--- ") and i + 1 < len(lines) and lines[i + 1].startswith(b"+++ "):
                path = self._path(line, lines[i + 1])
                i += 2
            elif path and line.startswith(b"@@ "):
                i = self._hunk(path, lines, i)
            else:
                i += 1

    def _path(self, old, new):
        old, new = old[4:].decode(), new[4:].decode()
        if old[2:] != new[2:] or not old.startswith("a/"):
            raise Refused(f"{self.name}: {old} -> {new}: patches edit files of the tree, "
                          "new files belong into kbuild/files")
        if ".." in Path(old[2:]).parts:
            raise Refused(f"{self.name}: {old}: not a path inside the tree")
        return old[2:]

    def _hunk(self, path, lines, at):
        header = lines[at].decode(errors="replace")
        match = re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", header)
        if not match:
            raise Refused(f"{self.name}: {path}: broken hunk header {header!r}")
        start, olds, news = int(match[1]), int(match[2] or 1), int(match[3] or 1)
        old, new, i = [], [], at + 1
        while len(old) < olds or len(new) < news:
            kind, text = (lines[i][:1], lines[i][1:]) if i < len(lines) else (b"?", b"")
            if kind not in (b" ", b"-", b"+", b""):
                raise Refused(f"{self.name}: {path}: {header}: cut short")
            if kind != b"+":
                old.append(text)
            if kind != b"-":
                new.append(text)
            i += 1
        self.hunks.setdefault(path, []).append(Hunk(match[0], max(start - 1, 0), old, new))
        return i

    def apply(self, path, data):
        return self._walk(path, data, self.hunks.get(path, ()))

    def undo(self, path, data):
        shift, hunks = 0, []
        for hunk in self.hunks.get(path, ()):
            hunks.append(hunk.reversed(shift))
            shift += len(hunk.new) - len(hunk.old)
        return self._walk(path, data, hunks)

    def _walk(self, path, data, hunks):
        """Applies `hunks`: moved ones are found, changed ones are not."""
        lines = data.split(b"\n")
        shift, floor = 0, 0
        for number, hunk in enumerate(hunks, 1):
            at = find(lines, hunk.old, hunk.start + shift, floor)
            if at is None:
                raise Mismatch(self.name, path, number, hunk, hunk.why_not_at(lines, hunk.start + shift))
            lines[at:at + len(hunk.old)] = hunk.new
            shift = at - hunk.start + len(hunk.new) - len(hunk.old)
            floor = at + len(hunk.new)
        return b"\n".join(lines)


def find(lines, want, near, floor):
    """The place of `want` in `lines` nearest to `near`, not before `floor`."""
    last = len(lines) - len(want)
    for distance in range(len(lines) + 1):
        for at in (near - distance, near + distance):
            if floor <= at <= last and lines[at:at + len(want)] == want:
                return at
    return None


def apply_all(series, path, data):
    for patch in series:
        data = patch.apply(path, data)
    return data


def undo_all(series, path, data):
    for patch in reversed(series):
        data = patch.undo(path, data)
    return data


def pristine(series, path, data):
    """`data` without the patches that are in it already: all, some or none."""
    for count in range(len(series), 0, -1):
        if path not in series[count - 1].hunks:
            continue
        with contextlib.suppress(Mismatch):
            return undo_all(series[:count], path, data)
    return data


def own_series(upto=None):
    files = sorted((KBUILD / "patches").glob("[0-9]*.patch"))
    if not files:
        raise Refused(f"no patches in {KBUILD / 'patches'}: the checkout is incomplete")
    return [Patch(f.name, f.read_bytes()) for f in files[:upto]]
