"""Compares the library's mutexes with platform/lock_ranks.def, and the latter with docs/architecture.md."""
import pathlib
import re
import sys

FOLDERS = ["platform", "planning", "kernels", "runtime", "capi"]
STANDARD = re.compile(r"\bstd::(\w*mutex|condition_variable\w*|scoped_lock|call_once)\b|\bpthread_(mutex|rwlock|spin)\w*")
USED = re.compile(r"\b(?:Mutex|SharedMutex|LockFloor)\s+\w+[({]LockRank::(\w+)[)}]")


def main(root):
    ranks = re.findall(r"^TUFF_LOCK\((\w+)\)", (root / "platform/lock_ranks.def").read_text(), re.M)
    problems, used = [], set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            source = path.relative_to(root).as_posix()
            text = re.sub(r"//.*", "", path.read_text())
            found = USED.findall(text)
            used.update(found)
            declared = len(re.findall(r"\b(?:Mutex|SharedMutex)\s+\w+[;({]", text))
            floors = len(re.findall(r"\bLockFloor\s+\w+[;({]", text))
            if source.startswith("platform/mutex."):
                continue
            if declared + floors != len(found):
                problems.append(f"{source}: a mutex without its rank")
            for line, content in enumerate(text.splitlines(), 1):
                if STANDARD.search(content):
                    problems.append(f"{source}:{line}: not a Mutex of platform/mutex.hpp, so its order is not checked")
    problems += [f"platform/lock_ranks.def: nothing has the rank {rank}" for rank in ranks if rank not in used]
    page = (root / "docs/architecture.md").read_text()
    table = page[page.index("\n## Locks") :]
    listed = re.findall(r"^\| `(\w+)` \|", table[: table.index("\n## ", 1)], re.M)
    if listed != ranks:
        problems.append(f"docs/architecture.md lists {listed}, platform/lock_ranks.def {ranks}")
    print(*problems, sep="\n")
    print(f"{len(ranks)} ranks, {len(problems)} problems")
    return 1 if problems or len(ranks) < 10 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
