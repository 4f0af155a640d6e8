"""A progress bar on a terminal, or a few plain lines if the output goes to a file."""

import shutil
import sys
import time


class Progress:
    """with Progress("Training", steps) as bar: … bar.update(done, "loss 0.123")"""

    WIDTH = 28
    INTERVAL = 0.1  # seconds between updates

    def __init__(self, title, total, stream=sys.stdout):
        self.title, self.total, self.stream = title, total, stream
        self.on_terminal = stream.isatty()
        self.drawn = 0.0
        self.next_line = 0.2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.on_terminal:
            self.stream.write("\n")

    def update(self, done, text):
        now = time.monotonic()
        if self.on_terminal:
            if now - self.drawn >= self.INTERVAL or done == self.total:
                self.drawn = now
                columns = shutil.get_terminal_size().columns
                self.stream.write("\r" + self._line(done, text)[: columns - 1].ljust(columns - 1))
                self.stream.flush()
        elif done >= self.next_line * self.total:
            self.next_line += 0.2
            self.stream.write(self._line(done, text) + "\n")
            self.stream.flush()

    def _line(self, done, text):
        eighths = done * self.WIDTH * 8 // self.total
        bar = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
        return f"  {self.title} {done * 100 // self.total:3d}% ▕{bar.ljust(self.WIDTH)}▏ {text}"
