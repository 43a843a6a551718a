# SPDX-License-Identifier: GPL-2.0
"""What the parts of integrate share."""

import hashlib
from pathlib import Path

KBUILD = Path(__file__).resolve().parent.parent
ROOT = KBUILD.parent


class Refused(Exception):
    """The request cannot be carried out; nothing was changed."""


def digest(data):
    return hashlib.sha256(data).hexdigest()


def read(path):
    """The bytes of a file, or None where there is none."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
