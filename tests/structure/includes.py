"""Reads every #include of the sources and fails on one that points up: docs/architecture.md has the layers."""
import pathlib
import re
import sys

# What each folder may include. The public header is everybody's.
ALLOWED = {
    "platform": {"platform"},
    "planning": {"planning", "platform"},
    "kernels": {"kernels", "planning"},
    "runtime": {"runtime", "planning", "platform"},
    "capi": {"capi", "kernels", "runtime", "planning", "platform"},
    "networks": {"networks"},
    "tool": {"tool"},
    "bench": {"bench", "networks"},
    "examples": {"examples"},
    "tests": {"tests", "networks"},
}

# Arrows that cross a line on purpose, with the reason.
EXCEPTIONS = {
    ("tool", "runtime/cache_folder.hpp"): "`tuff cache` reads the folder that the library writes",
    ("tool", "runtime/tuning_file.hpp"): "`tuff tune` writes the file that the library reads",
    ("tool", "planning/tuning_table.hpp"): "the same",
    ("tool", "platform/platform.hpp"): "the two above stand on it",
    ("tool", "runtime/variables.hpp"): "the tool refuses the variables that the library warns of",
    ("bench/host_cost.cpp", "runtime/vulkan/vulkan_backend.hpp"): "it measures the host's part of a call alone",
    ("bench/host_cost.cpp", "capi/objects.hpp"): "the same",
}

# The build makes this from the families' GLSL, for the families.
GENERATED = {"shaders.hpp": {"kernels"}}


def excused(source, target):
    return any(source.startswith(place) and target == path for place, path in EXCEPTIONS)


def main(root):
    problems, read = [], 0
    for folder, allowed in ALLOWED.items():
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in {".cpp", ".hpp", ".h", ".c"}:
                continue
            source = path.relative_to(root).as_posix()
            if source.startswith(("tests/internal/", "tests/planners/")):  # these test the inside
                continue
            read += 1
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
                if not found:
                    continue
                target = found.group(1)
                top = target.split("/")[0]
                if target.endswith(".def"):  # a table of operations: data, for everybody
                    continue
                if target in GENERATED:
                    wrong = folder not in GENERATED[target]
                else:
                    wrong = top in ALLOWED and top not in allowed and not excused(source, target)
                if wrong:
                    problems.append(f"{source}:{number}: {folder}/ may not include {target}")
    print(*problems, sep="\n")
    print(f"{read} files, {len(problems)} includes that point up")
    return 1 if problems or read < 100 else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
