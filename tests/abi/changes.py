#!/usr/bin/env python3
"""Compares the interface that tuff.h declares with that of version 0.8.0, by libabigail: only additions are allowed.

    changes.py check       compares with baseline.xml; fails for anything but additions
    changes.py mutations   tests the check: breaks the header in many ways, each of which must be found
    changes.py baseline    writes baseline.xml from the header of version 0.8.0:
                           git show 0c81868:include/tuff/tuff.h | tests/abi/changes.py baseline

The comparison uses a small library built here, with the header's functions and debug information; exports.cmake checks
that libtuff.so exports exactly these. abidw and abidiff are in the package abigail-tools of Debian and Ubuntu.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = HERE.parent.parent / "include" / "tuff" / "tuff.h"
BASELINE = HERE / "baseline.xml"
# Bits of abidiff's exit status: an error, or wrong use. The other bits say what changed.
ERRORS = 1 | 2


def describe(header: str, folder: Path) -> Path:
    """abidw's description of a library with the header's declarations."""
    (folder / "tuff").mkdir(parents=True)
    (folder / "tuff" / "tuff.h").write_text(header, encoding="utf-8")
    declarations = re.findall(r"^TUFF_API [^;#]*;", header, flags=re.M)
    if not declarations:
        raise SystemExit("the header declares no function")
    bodies = "".join(declaration[:-1] + " { return 0; }\n" for declaration in declarations)
    (folder / "functions.c").write_text('#include "tuff/tuff.h"\n' + bodies, encoding="utf-8")
    compiler = os.environ.get("CC", "cc")
    build = "-std=c11 -g -O0 -w -fPIC -shared -Wl,-soname,libtuff.so.1 -I. functions.c -o libtuff.so.1"
    subprocess.run([compiler, *build.split()], cwd=folder, check=True)
    quiet = "--no-show-locs --no-corpus-path --no-comp-dir-path --exported-interfaces-only --drop-private-types"
    subprocess.run(["abidw", "--headers-dir", "tuff", *quiet.split(), "--out-file", "abi.xml", "libtuff.so.1"],
                   cwd=folder, check=True)  # fmt: skip
    return folder / "abi.xml"


def without_appended_fields(path: Path) -> Path:
    """The description without the fields after the end of the baseline's structures.

    Such fields break nothing in a structure that starts with struct_size, which tells how much of it the caller has.
    (abidiff's own suppression, has_data_member_inserted_at, hides all other changes of such a structure, and of
    others.)
    """
    old = {entry.get("name"): entry for entry in ElementTree.parse(BASELINE).iter("class-decl")}
    tree = ElementTree.parse(path)
    for entry in tree.iter("class-decl"):
        before, fields = old.get(entry.get("name")), entry.findall("data-member")
        if before is None or not fields or fields[0].find("var-decl").get("name") != "struct_size":
            continue
        end = int(before.get("size-in-bits"))
        appended = [field for field in fields if int(field.get("layout-offset-in-bits")) >= end]
        if appended:
            for field in appended:
                entry.remove(field)
            entry.set("size-in-bits", str(end))
    pruned = path.with_name("pruned.xml")
    tree.write(pruned)
    return pruned


def breaks(header: str) -> str:
    """abidiff's complaint about the header, or an empty string."""
    with tempfile.TemporaryDirectory() as folder:
        found = without_appended_fields(describe(header, Path(folder) / "library"))
        result = subprocess.run(["abidiff", "--no-added-syms", BASELINE, found], capture_output=True, text=True)
        if result.returncode & ERRORS:
            raise SystemExit(f"abidiff failed:\n{result.stdout}{result.stderr}")
        return result.stdout if result.returncode else ""


# (description, pattern, replacement); the first match is replaced.
BROKEN = [
    ("a function removed", r"TUFF_API tuff_status tuff_unmap\([^;]*;", ""),
    ("a function renamed", r"\btuff_unmap\(tuff_buffer", "tuff_unmapped(tuff_buffer"),
    ("a parameter removed", r"(tuff_view\(tuff_buffer buffer), uint64_t offset", r"\1"),
    ("a parameter added", r"(tuff_free\(tuff_buffer buffer)", r"\1, int32_t when"),
    ("a parameter wider", r"(tuff_unary\(tuff_stream stream, )int32_t", r"\1int64_t"),
    ("a parameter of another sign", r"(tuff_unary\(tuff_stream stream, )int32_t", r"\1uint32_t"),
    ("a parameter float, not double", r"(uint64_t cols, )double( epsilon)", r"\1float\2"),
    ("a parameter by pointer", r"(tuff_free\()tuff_buffer ", r"\1tuff_buffer* "),
    ("another structure", r"(tuff_unary_ex\([^)]*const )tuff_unary_desc", r"\1tuff_reduce_desc"),
    ("another result", r"uint32_t (tuff_version\()", r"uint64_t \1"),
    ("a handle of 32 bits", r"typedef uint64_t tuff_buffer;", "typedef uint32_t tuff_buffer;"),
    ("the last field removed", r"  double alpha; /\* [^\n]*LEAKY_RELU[^\n]*\n", ""),
    ("a field in the middle removed", r"(typedef struct tuff_stats \{.*?)  uint64_t dispatches;[^\n]*\n", r"\1"),
    ("a field inserted", r"(typedef struct tuff_unary_desc \{.*?)(  uint64_t n;)", r"\1  uint64_t more;\n\2"),
    ("a field inserted in padding", r"(typedef struct tuff_kernel_constant \{.*?)uint32_t reserved;", r"\1uint16_t reserved, more;"),
    ("fields in another order", r"(typedef struct tuff_unary_desc \{.*?)input, output;", r"\1output, input;"),
    ("two fields in another order", r"(  uint64_t bytes_in_use; [^\n]*\n)(  uint64_t bytes_reserved;[^\n]*\n)", r"\2\1"),
    ("a field of another sign", r"(typedef struct tuff_unary_desc \{.*?)int32_t op;", r"\1uint32_t op;"),
    ("a field wider", r"(typedef struct tuff_event_desc \{.*?)uint32_t flags;", r"\1uint64_t flags;"),
    ("a number in place of a double", r"(typedef struct tuff_unary_desc \{.*?)double alpha;", r"\1uint64_t alpha;"),
    ("an array longer", r"(typedef struct tuff_permute_desc \{.*?)shape\[8\]", r"\1shape[9]"),
    ("the last array longer", r"(  tuff_matrix_shape matrix_shapes\[TUFF_MAX_MATRIX_SHAPES)\]", r"\1 + 1]"),
    ("a field behind, and one removed", r"(typedef struct tuff_unary_desc \{.*?)  uint64_t n;(.*?)\}", r"\1\2uint64_t more[2]; }"),
    ("a field behind, and two exchanged", r"(typedef struct tuff_unary_desc \{.*?)input, output;(.*?)\}", r"\1output, input;\2uint64_t more; }"),
    ("a field behind, and one of another type", r"(typedef struct tuff_unary_desc \{.*?)int32_t op;(.*?)\}", r"\1float op;\2uint64_t more; }"),
    ("a field behind in what has no struct_size", r"(typedef struct tuff_matrix_shape \{.*?)\}", r"\1uint32_t more; }"),
    ("a callback's parameter", r"(\(\*tuff_log_callback\)\(void\* user, )int32_t", r"\1int64_t"),
]  # fmt: skip
ADDED = [
    ("nothing", r"\A", ""),
    ("a function", r"(TUFF_API tuff_status tuff_unmap)", r"TUFF_API tuff_status tuff_more(tuff_stream stream, double x);\n\1"),
    ("a structure", r"(TUFF_API tuff_status tuff_unmap)",
     r"typedef struct tuff_more_desc { uint32_t struct_size; } tuff_more_desc;\nTUFF_API tuff_status tuff_more(const tuff_more_desc* d);\n\1"),
    ("a field behind the others", r"(typedef struct tuff_unary_desc \{.*?)\}", r"\1uint64_t more; }"),
    ("two fields behind the others", r"(typedef struct tuff_device_properties \{.*?)\}", r"\1uint64_t more; double other[2]; }"),
    ("a constant", r"TUFF_UNARY_COS = 17", "TUFF_UNARY_COS = 17, TUFF_UNARY_MORE = 18"),
    ("the name of a parameter", r"(tuff_free\(tuff_buffer )buffer", r"\1memory"),
    ("a type's other name", r"(tuff_unary\(tuff_stream stream, )int32_t", r"\1tuff_dtype"),
    ("a reserved field in use", r"(typedef struct tuff_unary_desc \{.*?int32_t )reserved;", r"\1used;"),
]  # fmt: skip


def mutations(header: str) -> int:
    failures = []
    for must_break, rows in ((True, BROKEN), (False, ADDED)):
        for what, pattern, replacement in rows:
            changed, count = re.subn(pattern, replacement, header, count=1, flags=re.S)
            if count != 1:
                failures.append(f"{what}: the header has nothing like {pattern}")
                continue
            report = breaks(changed)
            if bool(report) != must_break:
                failures.append(f"{what}: {'not found' if must_break else 'taken for a break:' + report}")
            else:
                print(f"{'found' if must_break else 'allowed'}: {what}")
    print("\n".join(failures))
    return 1 if failures else 0


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in ("check", "mutations", "baseline"):
        print(__doc__, file=sys.stderr)
        return 2
    missing = [tool for tool in ("abidw", "abidiff") if shutil.which(tool) is None]
    if missing:
        print(f"the comparison does not run on this device: no {', '.join(missing)} (package abigail-tools)")
        return 2
    if sys.argv[1] == "baseline":
        with tempfile.TemporaryDirectory() as folder:
            BASELINE.write_bytes(describe(sys.stdin.read(), Path(folder) / "library").read_bytes())
        return 0
    header = HEADER.read_text(encoding="utf-8")
    if sys.argv[1] == "mutations":
        return mutations(header)
    report = breaks(header)
    if report:
        print(f"programs made for version 0.8.0 would not work with this header:\n{report}")
    return 1 if report else 0


if __name__ == "__main__":
    sys.exit(main())
