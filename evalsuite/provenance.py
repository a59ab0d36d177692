"""Where a number came from: versions, platform, commit, and hashes of files."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("evalsuite", "torch", "numpy", "scipy", "safetensors", "pytest", "pytest-xdist", "syrupy")


def versions() -> dict[str, str]:
    """Version of Python and of every package that can move a score."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = _own_version() if package == "evalsuite" else "absent"
    return found


def _own_version() -> str:
    """A clone that was never installed has no metadata, only the package itself."""
    from evalsuite import __version__

    return __version__


def platform_name() -> str:
    """System and processor family, such as ``Linux x86_64``."""
    return f"{platform.system()} {platform.machine()}"


@lru_cache
def git_commit(folder: Path) -> str | None:
    """Short hash of the commit that is checked out in ``folder``, or None outside a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=folder, capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def sha256_of_files(path: Path) -> str:
    """SHA-256 (hex) of a file, or of every file below a folder with its name, in sorted order."""
    digest = hashlib.sha256()
    if path.is_file():
        digest.update(path.read_bytes())
        return digest.hexdigest()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        digest.update(file.relative_to(path).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def content_hash(*parts: bytes | str) -> str:
    """Sixteen hex digits that stand for the parts: enough to tell items apart, short enough to store a thousand."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:16]
