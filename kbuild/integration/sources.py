# SPDX-License-Identifier: GPL-2.0
"""The files that go into a tree: ours, and those of the crates that are fetched."""

import contextlib
import fnmatch
import os
import re
import subprocess
import tempfile
from pathlib import Path

from .common import ROOT, Refused, digest, read

# What is copied where. kbuild/files mirrors the tree.
SOURCES = (
    ("irqmod/src", "rust/irqmod"),
    ("nvme-pci/src", "drivers/nvme/host/rust"),
    ("examples", "samples/rust/irqmod"),
    ("kbuild/files", "."),
)
WANTED = ("*.rs", "*.c", "*.h", "*.S", "Kconfig", "Makefile")
# The root of the host crate, which no module names. (Other files for the host stay: rustfmt follows `mod` whatever
# its cfg says, so "make rustfmtcheck" would fail without them.)
HOST_ONLY = ("nvme-pci/src/host.rs",)

# Crates that are fetched, at the versions of Cargo.lock, with the license
# their manifest states and the parts that need features or dev-dependencies.
CRATES = {
    "bitflags": ("Apache-2.0 OR MIT", ("tests.rs", "tests/*", "external/*", "example_generated.rs")),
    "static_assertions": ("Apache-2.0 OR MIT", ()),
}


def own_sources():
    """The bytes of every file of ours, by its path in the tree."""
    wanted = {}
    for src, dest in SOURCES:
        base = ROOT / src
        for path in sorted(p for p in base.rglob("*") if p.is_file()):
            inside = path.relative_to(base)
            if any(part.startswith(".") for part in inside.parts) or str(path.relative_to(ROOT)) in HOST_ONLY:
                continue
            if any(fnmatch.fnmatch(path.name, pattern) for pattern in WANTED):
                add(wanted, os.path.normpath(Path(dest) / inside), path.read_bytes())
    return wanted


def add(wanted, path, data):
    if path in wanted:
        raise Refused(f"{path}: two sources claim this place in the tree")
    wanted[path] = data


def crate_sources():
    wanted = {}
    vendor = vendored()
    for name, (spdx, skipped) in CRATES.items():
        base = vendor / name / "src"
        if not (base / "lib.rs").is_file():
            raise Refused(f"{base}/lib.rs: not there, the cache is damaged; remove {vendor} and run again")
        for path in sorted(base.rglob("*.rs")):
            inside = str(path.relative_to(base))
            if not any(fnmatch.fnmatch(inside, pattern) for pattern in skipped):
                spdx_line = f"// SPDX-License-Identifier: {spdx}\n\n".encode()
                add(wanted, f"rust/{name}/{inside}", spdx_line + path.read_bytes())
    return wanted


def locked_crates():
    """The entries of our crates in Cargo.lock: version and checksum."""
    lock = ROOT / "Cargo.lock"
    entries = {}
    for block in (read(lock) or b"").decode().split("[[package]]")[1:]:
        fields = dict(re.findall(r'^(\w+) = "(.*)"$', block, re.M))
        if fields.get("name") in CRATES:
            entries.setdefault(fields["name"], []).append((fields["version"], block.strip()))
    for name in CRATES:
        if len(entries.get(name, ())) != 1:
            raise Refused(f"{lock}: expected exactly one version of {name}, found {len(entries.get(name, ()))}")
    return {name: entries[name][0] for name in CRATES}


def vendored():
    """A folder with the crates; fetched once for each set of versions."""
    locked = locked_crates()
    key = digest("\n".join(block for _, block in locked.values()).encode())[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "irqmod" / "vendor"
    done = cache / key
    if done.is_dir():
        return done
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as temp:
            fetch(Path(temp), locked)
            keep(Path(temp) / "vendor", done)
    except OSError as error:
        raise Refused(f"{error}: no place for the crates; XDG_CACHE_HOME=FOLDER names another") from None
    return done


def keep(fetched, done):
    try:
        os.rename(fetched, done)
    except OSError:
        if not done.is_dir():  # otherwise another run was first
            raise


def fetch(temp, locked):
    manifest = '[package]\nname = "vendor"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n'
    lock = 'version = 4\n\n[[package]]\nname = "vendor"\nversion = "0.0.0"\ndependencies = [\n'
    for name, (version, _) in locked.items():
        manifest += f'{name} = "={version}"\n'
        lock += f' "{name}",\n'
    lock += "]\n" + "".join(f"\n[[package]]\n{block}\n" for _, block in locked.values())
    (temp / "Cargo.toml").write_text(manifest)
    (temp / "Cargo.lock").write_text(lock)
    (temp / "lib.rs").write_text("")
    crates = " and ".join(f"{name} {version}" for name, (version, _) in locked.items())
    print(f"fetch    {crates} (cargo vendor)", flush=True)
    try:
        run = subprocess.run(["cargo", "vendor", "--quiet", "--locked", "vendor"], cwd=temp, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Refused(f"cargo is not on the PATH; it is needed once, to fetch {crates}") from None
    if run.returncode:
        raise Refused(f"cargo vendor could not fetch {crates} (is the crate registry out of reach?):\n"
                      + run.stderr.strip())
