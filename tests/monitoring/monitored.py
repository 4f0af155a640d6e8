"""Runs programs with contexts and reads them with tuff top.

    monitored.py TOOL PROGRAM
"""

import json
import os
import random
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time

TOOL, PROGRAM = sys.argv[1:3]
HEADER_BYTES, SLOT_BYTES, SLOTS = 128, 448, 64


class Folder:
    """A runtime folder, and an environment that names it."""

    def __init__(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="tuff-monitored-")  # removed when the object goes
        self.base = self.temporary.name
        self.path = os.path.join(self.base, "tuff")
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": self.base}
        self.environment.pop("TUFF_MONITOR", None)

    def names(self):
        return sorted(os.listdir(self.path)) if os.path.isdir(self.path) else []

    def top(self, *arguments, interval="0.05", environment=None):
        done = subprocess.run(
            [TOOL, "top", "--once", "--interval", interval, *arguments], env=environment or self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, (done.returncode, done.stderr)
        return done.stdout

    def contexts(self, **options):
        return self.read(**options)["contexts"]

    def read(self, **options):
        def no(word):
            raise ValueError(f"{word} is no JSON")

        text = self.top("--json", **options).decode("utf-8")
        assert text.count("\n") == 1, text
        return json.loads(text, parse_constant=no)


class Program:
    def __init__(self, folder, contexts=1, backend="host", **variables):
        self.process = subprocess.Popen(
            [PROGRAM, str(contexts), backend], env={**folder.environment, **variables}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        assert self.process.stdout.readline() == "done\n", line

    def end(self, line=None):
        if line is not None:
            self.process.stdin.write(line + "\n")
        self.process.stdin.close()
        self.process.wait(timeout=60)

    @property
    def pid(self):
        return self.process.pid


def test_contexts_are_shown():
    folder = Folder()
    assert folder.contexts() == []
    one, two = Program(folder, 1), Program(folder, 3)
    (page,) = [name for name in folder.names() if name.startswith(f"{one.pid}.")]
    assert stat.S_IMODE(os.stat(os.path.join(folder.path, page)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder.path).st_mode) == 0o700
    contexts = folder.contexts()
    assert [(c["process"], c["context"]) for c in contexts] == sorted([(one.pid, 1), (two.pid, 1), (two.pid, 2), (two.pid, 3)])
    for context in contexts:
        assert context["bytes_in_use"] == 1 << 20 and context["bytes_peak"] == 1 << 20, context
        assert context["bytes_limit"] == 64 << 20 and context["in_flight"] == 0, context
        assert context["backend"] == "host" and context["device"] == "Host processor", context
        assert context["program"] == os.path.basename(PROGRAM), context
        assert context["calls"] == 0 and context["calls_per_second"] == 0 and context["flops_per_second"] is None
    one.ask("calls 25")
    two.ask("close")
    contexts = {(c["process"], c["context"]): c for c in folder.contexts()}
    assert sorted(contexts) == sorted([(one.pid, 1), (two.pid, 2), (two.pid, 3)])
    assert contexts[one.pid, 1]["calls"] == 25 and contexts[one.pid, 1]["dispatches"] == 25
    text = folder.top().decode()
    assert str(one.pid) in text and "1.00 MiB of 64.0 MiB" in text, text
    one.end("exit")
    two.end()
    assert folder.names() == []
    assert "No process" in folder.top().decode()


def test_a_device():
    folder = Folder()
    program = Program(folder, 1, "vulkan")
    program.ask("calls 10")
    state = folder.read()
    (context,) = state["contexts"]
    assert context["backend"] == "vulkan" and context["in_flight"] == 0, context
    assert context["submissions"] >= 1 and context["dispatches"] >= 10, context
    assert context["bytes_moved"] >= 10 * 8000, context
    assert context["bytes_in_use"] >= 1 << 20
    (device,) = [d for d in state["devices"] if d["uuid"] == context["uuid"]][:1]
    assert device["name"] == context["device"] and device["heap_bytes"] > 0
    program.end("exit")
    assert folder.names() == []


def test_rates():
    folder = Folder()
    program = Program(folder)
    top = subprocess.Popen(
        [TOOL, "top", "--json", "--interval", "0.2"], env=folder.environment, stdout=subprocess.PIPE, text=True
    )
    total, calls = 0, 0
    for _ in range(5):
        for _ in range(3):
            program.ask("calls 10")
            calls += 10
            time.sleep(0.02)
        state = json.loads(top.stdout.readline())
        total += state["contexts"][0]["calls_per_second"] * state["seconds"]
    while state["contexts"][0]["calls"] != calls:
        state = json.loads(top.stdout.readline())
        total += state["contexts"][0]["calls_per_second"] * state["seconds"]
    # All calls but those before its first look.
    assert calls - 30 <= round(total) <= calls, (total, calls)
    top.kill()
    top.wait()
    program.end()


def test_pages_of_dead_processes_are_removed():
    for how in ["_exit", "abort", "kill", "exec"]:
        folder = Folder()
        program = Program(folder)
        if how == "kill":
            os.kill(program.pid, signal.SIGKILL)
            program.process.wait()
        elif how == "exec":  # the process lives on, as another program
            program.process.stdin.write("exec\n")
            for _ in range(500):
                if not folder.contexts():
                    break
                time.sleep(0.01)
        else:
            program.end(how)
        assert len(folder.names()) == (0 if how == "exec" else 1), (how, folder.names())
        assert folder.contexts() == [], how
        assert folder.names() == [], how
        program.process.kill()
        program.process.wait()
    # The next process removes it too.
    folder = Folder()
    program = Program(folder)
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait()
    again = Program(folder)
    assert len(folder.names()) == 1 and folder.names()[0].startswith(f"{again.pid}.")
    again.end()


def test_forks():
    folder = Folder()
    program = Program(folder)
    program.ask("forkexit")  # the child runs exit handlers
    assert len(folder.contexts()) == 1
    program.ask("fork")  # the child stays, and has the page's descriptor
    program.ask("calls 3")
    (context,) = folder.contexts()
    assert context["calls"] == 3 and context["process"] == program.pid
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait()
    assert folder.contexts() == [] and folder.names() == []  # whether or not the child still lives
    program.process.stdin.close()


def test_nothing_is_published():
    folder = Folder()
    program = Program(folder, TUFF_MONITOR="off")
    assert folder.contexts() == [] and folder.names() == []
    program.end()
    for runtime, says in [("", "XDG_RUNTIME_DIR is not set"), ("relative", "not an absolute path"), ("/nowhere/at/all", "cannot be created")]:
        environment = {**folder.environment, "XDG_RUNTIME_DIR": runtime}
        program = Program(folder, XDG_RUNTIME_DIR=runtime)
        program.ask("calls 1")
        program.end()
        state = folder.read(environment=environment)
        assert says in state["problem"] and state["folder"] is None and state["contexts"] == [], state
        assert says in " ".join(folder.top(environment=environment).decode().split())
    # Others could put pages there.
    os.chmod(folder.path, 0o777)
    program = Program(folder)
    assert folder.names() == [] and "others" in folder.read()["problem"]
    program.end()


def test_more_contexts_than_slots():
    folder = Folder()
    program = Program(folder, 70)
    state = folder.read()
    assert len(state["contexts"]) == SLOTS and state["not_shown"] == 70 - SLOTS
    program.ask("close")
    state = folder.read()
    assert len(state["contexts"]) == SLOTS - 1 and state["not_shown"] == 70 - SLOTS
    program.end()


def holder(path):
    """A process that holds the lock on this file, as the writer of a page does."""
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); "
        "sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    return process


def test_damaged_pages():
    folder = Folder()
    program = Program(folder, 2)
    (name,) = folder.names()
    page = open(os.path.join(folder.path, name), "rb").read()
    assert len(page) == HEADER_BYTES + SLOTS * SLOT_BYTES, len(page)
    path = os.path.join(folder.path, "99999.damage")

    def look(content):
        with open(path, "wb") as file:
            file.write(content)
        keeper = holder(path)
        state = folder.read()
        text = folder.top()
        assert b"\x1b" not in text and b"\xc2\x9b" not in text  # nothing that would move a terminal's cursor
        keeper.stdin.close()
        keeper.wait()
        own = [c for c in state["contexts"] if c["process"] == program.pid]
        assert len(own) == 2, state
        return state

    state = look(page)
    assert len(state["contexts"]) == 4 and state["ignored"] == []
    for content, says in [
        (b"", "0 bytes"), (page[:100], "100 bytes"), (page[:-1], "cut"), (page[:200], "cut"), (b"x" + page[1:], "begin"),
        (page[:8] + struct.pack("<I", 2) + page[12:], "version is 2"),
        (page[:12] + struct.pack("<I", 0) + page[16:], "sizes"), (page[:16] + struct.pack("<I", 1) + page[20:], "sizes"),
        (page[:20] + struct.pack("<I", 0xFFFFFFFF) + page[24:], "sizes"),
    ]:  # fmt: skip
        state = look(content)
        assert len(state["contexts"]) == 2 and len(state["ignored"]) == 1 and says in state["ignored"][0], (says, state)
    # Names with control characters, and what is not UTF-8, which is still JSON.
    nasty = b"\x1b[2J\xc2\x9b2J\xff\xfe\n\r" + b"A" * 300
    wrong = bytearray(page)
    wrong[24:88] = nasty[:64]  # no NUL at the end either
    wrong[HEADER_BYTES + 16 : HEADER_BYTES + 272] = nasty[:256]
    look(bytes(wrong))
    rng = random.Random(1)
    for _ in range(30):
        wrong = bytearray(page)
        for _ in range(rng.randrange(1, 200)):
            wrong[rng.randrange(HEADER_BYTES, len(wrong))] = rng.randrange(256)
        look(bytes(wrong))
    look(page[:HEADER_BYTES] + b"\xff" * (len(page) - HEADER_BYTES))  # NaN and huge numbers everywhere
    os.unlink(path)
    # What is no file of ours is left alone and named.
    os.mkfifo(os.path.join(folder.path, "pipe"))
    os.mkdir(os.path.join(folder.path, "folder"))
    os.symlink("/etc/passwd", os.path.join(folder.path, "link"))
    state = folder.read()
    assert len(state["contexts"]) == 2 and len(state["ignored"]) == 3, state
    assert {"pipe", "folder", "link"} <= set(folder.names())
    program.ask("calls 1")
    program.end()


def test_other_files_are_left_alone():
    folder = Folder()
    assert folder.contexts() == []  # makes the folder
    others = [
        "notes", "123", "123.", ".k2d9xQ", "123.k2d9x", "123.k2d9xQQ", "123.k2d9x-", "12a.k2d9xQ", "-12.k2d9xQ", "1.2.k2d9xQ",
    ]  # fmt: skip
    for name in [*others, "99999999.k2d9xQ"]:  # the last is a page of a process that has ended
        with open(os.path.join(folder.path, name), "w") as file:
            file.write("x\n")
    program = Program(folder)  # removes such pages too
    folder.top()
    state = folder.read()
    assert set(folder.names()) >= set(others) and len(folder.names()) == len(others) + 1, folder.names()
    assert sorted(line.split(":")[0] for line in state["ignored"]) == sorted(others), state["ignored"]
    assert len(state["contexts"]) == 1 and all("named" in line for line in state["ignored"]), state
    program.end("exit")
    with open(os.path.join(folder.path, "99999999.k2d9xQ"), "w") as file:
        file.write("x\n")
    folder.top()
    assert folder.names() == sorted(others)


tests = {name: value for name, value in sorted(globals().items()) if name.startswith("test_")}
for name, test in tests.items():
    test()
    print(f"{name} passed", flush=True)
print(f"{len(tests)} tests passed")
