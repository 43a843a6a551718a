# SPDX-License-Identifier: GPL-2.0
"""A kernel source tree, the plan for it, and the record of what was done to it."""

import contextlib
import fnmatch
import json
import os
import shutil
from pathlib import Path

from .common import Refused, digest, read
from .patches import Mismatch, Patch, apply_all, pristine, undo_all
from .sources import CRATES

# What kbuild leaves beside a source.
PRODUCTS = ("*.o", "*.ko", "*.mod", "*.mod.c", "*.a", "*.bc", "*.rmeta", "*.order", "*.i", "*.s",
            "*.ll", "*.rsi", "*.symtypes", ".*.cmd", ".*.d")
# The same, of our library crates, in the tree's own rust/.
LIBRARY_PRODUCTS = tuple(
    pattern.format(crate)
    for crate in ("irqmod", *CRATES)
    for pattern in ("{}.o", "{}.bc", "{}.m.bc", "lib{}.rmeta", "{}.symtypes", ".{}.o.cmd", ".{}.o.d",
                    "exports_{}_generated.h", ".exports_{}_generated.h.cmd")
)


class Record:
    """What was done to a tree: TREE/.irqmod/record.json, the originals, the series.

    `edited` maps a path to the digest of its original and those we may have left there, `created` maps a
    path to the latter only. Both are written before the files are: a file with any of these digests is in a
    state of ours, however a run ended.
    """

    def __init__(self, tree):
        self.base = tree / ".irqmod"
        stored = read(self.base / "record.json")
        try:
            data = json.loads(stored) if stored else {}
            self.edited, self.created = data.get("edited", {}), data.get("created", {})
            self.dirs, self.series = data.get("dirs", []), data.get("series", [])
            inside = all(map(is_inside, (*self.edited, *self.created, *self.dirs, *self.series)))
        except (ValueError, AttributeError, TypeError):
            inside = False
        if not inside:
            raise Refused(f"{self.base / 'record.json'} is damaged; remove {self.base} and run again "
                          "(applied patches are recognised)")
        self.exists = stored is not None

    def write(self, path, data, mode=0o644):
        """Replaces a file of the tree as a whole or not at all."""
        temp = self.base / "tmp"
        self._mkdir(temp)
        (temp / "file").write_bytes(data)
        os.chmod(temp / "file", mode)
        self._own(temp / "file")
        self._mkdir(path.parent)
        os.replace(temp / "file", path)

    def _mkdir(self, path):
        if not path.is_dir():
            self._mkdir(path.parent)
            path.mkdir(exist_ok=True)
            self._own(path)

    def _own(self, path):
        """What root puts into somebody's tree is theirs."""
        owner = self.base.parent.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            os.chown(path, owner.st_uid, owner.st_gid)

    def original(self, path):
        return read(self.base / "orig" / path)

    def patches(self):
        return [Patch(name, read(self.base / "patches" / name) or b"") for name in self.series]

    def save(self, edited, created, dirs, series):
        self.edited, self.created, self.dirs, self.series = edited, created, dirs, series
        text = json.dumps({"edited": edited, "created": created, "dirs": dirs, "series": series}, indent=1)
        self.write(self.base / ".gitignore", b"*\n")
        self.write(self.base / "record.json", (text + "\n").encode())
        self.exists = True

    def remove(self):
        """The record itself goes last."""
        for part in ("orig", "patches", "tmp"):
            shutil.rmtree(self.base / part, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.base / "record.json")
        shutil.rmtree(self.base, ignore_errors=True)


def is_inside(path):
    """Whether a path in a record, which came with the tree, stays in the tree."""
    return not os.path.isabs(path) and ".." not in Path(path).parts


def is_product(path):
    return any(fnmatch.fnmatch(os.path.basename(path), pattern) for pattern in PRODUCTS)


class Tree:
    """A kernel source tree, and the plan for it: what every touched file is to hold (None: not be there)."""

    def __init__(self, path, force):
        self.path, self.force = path, force
        self.record = Record(path)
        self.problems = []
        self.before, self.plan, self.originals = {}, {}, {}

    def now(self, path):
        if path not in self.before:
            self.before[path] = read(self.path / path)
        return self.before[path]

    # What a file of the tree held before us.
    def original(self, path, series):
        data, entry = self.now(path), self.record.edited.get(path)
        if data is None:
            self.problems.append(f"{path}: not in this tree")
            return None
        if entry is None:
            return pristine(series, path, data)
        if digest(data) == entry["original"]:
            return data
        stored = self.record.original(path)
        if digest(data) in entry["ours"] and stored is not None and digest(stored) == entry["original"]:
            return stored
        try:
            return undo_all(self.record.patches(), path, data)
        except Mismatch as error:
            self.problems.append(f"{error} (taking our patches out of a file that was changed since)")
            return None

    def plan_patches(self, series):
        paths = {p for patch in series for p in patch.hunks}
        for path in sorted(paths | set(self.record.edited)):
            data = self.original(path, series)
            if data is None:
                continue
            try:
                self.plan[path] = apply_all(series, path, data)
                self.originals[path] = data
            except Mismatch as error:
                self.problems.append(str(error))

    def plan_sources(self, wanted):
        for path in sorted(set(wanted) | set(self.record.created)):
            data, new = self.now(path), wanted.get(path)
            ours = self.record.created.get(path, [])
            if data is not None and data != new and digest(data) not in ours and not self.force:
                self.problems.append(f"{path}: " + ("was changed here since it was copied"
                                     if ours else "exists and is not ours") + " (--force: overwrite it)")
            if data is None and new is not None:
                self._look_for_room(path)
            self.plan[path] = new

    def _look_for_room(self, path):
        """A folder in the place of a file or a file in the place of a folder isn't for us to remove."""
        problems = [f"{path}: is not a file"] if os.path.lexists(self.path / path) else []
        for parent in map(str, Path(path).parents):
            if os.path.lexists(self.path / parent) and not (self.path / parent).is_dir():
                problems.append(f"{parent}: is not a folder")
        self.problems += [problem for problem in problems if problem not in self.problems]

    def changes(self):
        return [(path, new) for path, new in sorted(self.plan.items()) if new != self.now(path)]

    def refuse_problems(self, what):
        if self.problems:
            raise Refused(f"{what}:\n  " + "\n  ".join(self.problems) + "\nThe tree is as it was.")

    def apply(self, series):
        """Record first, then the files, then the record without the states that are past."""
        changes = self.changes()
        edited = {p: {"original": digest(d), "ours": [digest(self.plan[p])]} for p, d in self.originals.items()}
        created = {p: [digest(d)] for p, d in self.plan.items() if p not in edited and d is not None}
        names = [patch.name for patch in series]
        dirs = self._own_dirs(created)
        if not changes and self._recorded(edited, created, series):
            return False
        for path, data in self.originals.items():
            self.record.write(self.record.base / "orig" / path, data)
        self.record.save(self._either(edited), self._either_created(created), dirs, self.record.series)
        for path, new in changes:
            self.put(path, new)
        for patch in series:
            self.record.write(self.record.base / "patches" / patch.name, patch.data)
        self.record.save({p: e for p, e in edited.items() if e["ours"] != [e["original"]]}, created, dirs, names)
        self._tidy(names, edited)
        return True

    def _recorded(self, edited, created, series):
        edited = {p: e for p, e in edited.items() if e["ours"] != [e["original"]]}
        stored = [read(self.record.base / "patches" / patch.name) for patch in series]
        return (edited, created) == (self.record.edited, self.record.created) and \
            [patch.name for patch in series] == self.record.series and stored == [patch.data for patch in series]

    def _either(self, edited):
        """Until the files are written, both the recorded and the new state are ours."""
        both = dict(self.record.edited)
        for path, entry in edited.items():
            ours = self.record.edited.get(path, {}).get("ours", [])
            both[path] = {"original": entry["original"], "ours": sorted({*ours, *entry["ours"], digest(self.now(path))})}
        return both

    def _either_created(self, created):
        both = {p: list(ours) for p, ours in self.record.created.items()}
        for path, ours in created.items():
            both[path] = sorted({*both.get(path, []), *ours})
        return both

    def _own_dirs(self, created):
        """The folders that hold nothing but files of ours, and what kbuild made of them."""
        own = set(self.record.dirs)
        parents = {parent for path in created for parent in Path(path).parents if str(parent) != "."}
        for parent in sorted(parents, reverse=True):
            inside = [str(p.relative_to(self.path)) for p in (self.path / parent).glob("*")]
            if all(p in created or p in own or is_product(p) for p in inside):
                own.add(str(parent))
        return sorted(own)

    def _tidy(self, names, edited):
        """Drops stored patches and originals that the record no longer names."""
        for stored in (self.record.base / "patches").glob("*"):
            if stored.name not in names:
                stored.unlink()
        for stored in [p for p in (self.record.base / "orig").rglob("*") if p.is_file()]:
            if str(stored.relative_to(self.record.base / "orig")) not in edited:
                stored.unlink()
        self.remove_empty_dirs()

    def put(self, path, data):
        target = self.path / path
        if data is None:
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
        else:
            mode = target.stat().st_mode & 0o7777 if target.exists() else 0o644
            self.record.write(target, data, mode)

    def revert(self):
        for path, new in self.changes():
            self.put(path, new)
        self._remove_products()
        self.remove_empty_dirs()
        self.record.remove()

    def _remove_products(self):
        for directory in self.record.dirs:
            for path in self.path.glob(f"{directory}/*"):
                if is_product(path):
                    path.unlink()
        for name in LIBRARY_PRODUCTS:
            with contextlib.suppress(FileNotFoundError):
                (self.path / "rust" / name).unlink()

    def remove_empty_dirs(self):
        for directory in sorted(self.record.dirs, reverse=True):
            with contextlib.suppress(OSError):
                (self.path / directory).rmdir()
