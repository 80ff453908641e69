"""wheel.py VERSION LIBRARY FOLDER: a wheel of linkwise with its shared library, the same bytes
from the same inputs; the standard library alone is needed."""

import base64
import hashlib
import sys
import sysconfig
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def contents(version: str, library: Path, tag: str) -> "dict[str, bytes]":
    """File names in the wheel and their bytes, but for RECORD."""
    info = f"linkwise-{version}.dist-info"
    files = {
        f"linkwise/{path.name}": path.read_bytes()
        for path in sorted((HERE / "linkwise").glob("*.py")) + [HERE / "linkwise/py.typed"]
    }
    files["linkwise/liblinkwise.so.0"] = library.read_bytes()
    files[f"{info}/LICENSE"] = (HERE.parent / "LICENSES/GPL-3.0-or-later.txt").read_bytes()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: linkwise\nVersion: {version}\n"
        "Summary: How a training job is split over a GPU cluster, and which rank runs where\n"
        "License: GPL-3.0-or-later\nRequires-Python: >=3.9\nProvides-Extra: matrices\n"
        'Requires-Dist: numpy; extra == "matrices"\n'
    ).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: linkwise\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    return files


def main() -> None:
    version, library, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    tag = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
    files = contents(version, library, tag)
    record = f"linkwise-{version}.dist-info/RECORD"
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    files[record] = ("".join(rows) + f"{record},,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"linkwise-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980: no clock is read
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    print(wheel)


main()
