"""Sits at a terminal and uses the program as a person would. Words: the scene, the program."""

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time

SCENE, PROGRAM = sys.argv[1:3]
PATIENCE = 15


class Screen:
    """A program at a terminal of its own, which it leads; or as a job of who leads that, and does as it does."""

    def __init__(self, argv, rows=30, columns=100, as_job=False):
        self.seen = b""
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        # Held open so that the terminal outlives the program, and its modes can be looked at.
        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.closerange(3, 20)
            if as_job:
                look_after(argv)
            os.execvp(argv[0], argv)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal_job(self, number):
        os.killpg(os.tcgetpgrp(self.master), number)

    def type(self, text):
        os.write(self.master, text if isinstance(text, bytes) else text.encode())

    def take(self, wait):
        if not select.select([self.master], [], [], wait)[0]:
            return False
        try:
            self.seen += os.read(self.master, 65536)
        except OSError:
            return False
        return True

    def expect(self, pattern):
        """Reads until the pattern is there, and forgets what was up to it."""
        give_up = time.monotonic() + PATIENCE
        while True:
            found = re.search(pattern.encode(), self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found.group().decode()
            if time.monotonic() > give_up:
                fail(f"waited for {pattern!r}, saw {self.seen!r}")
            self.take(0.05)

    def wait(self, options=0):
        """How the program ended, or stopped."""
        give_up = time.monotonic() + PATIENCE
        while True:
            pid, status = os.waitpid(self.pid, options | os.WNOHANG)
            if pid:
                while self.take(0):
                    pass
                return status
            if time.monotonic() > give_up:
                os.kill(self.pid, signal.SIGKILL)
                fail(f"it did not end, saw {self.seen!r}")
            self.take(0.01)

    def ends(self, code):
        status = self.wait()
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status) != code:
            fail(f"wait status {status}, not exit code {code}; saw {self.seen!r}")

    def passes_keys_on(self):
        """Waits until a key is no signal to whoever is in front."""
        give_up = time.monotonic() + PATIENCE
        while termios.tcgetattr(self.slave)[3] & termios.ISIG:
            if time.monotonic() > give_up:
                fail(f"the terminal does not pass keys on, saw {self.seen!r}")
            self.take(0.01)

    def modes_are_restored(self):
        after = termios.tcgetattr(self.slave)
        if after != self.before:
            fail(f"modes were {self.before[:4]}, are {after[:4]}")


def look_after(argv):
    """Waits for a job in front of the terminal: stops when it stops, calls it back when called back, ends as it ends."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(argv[0], argv)
    while True:
        status = os.waitpid(job, os.WUNTRACED)[1]
        if not os.WIFSTOPPED(status):
            os._exit(os.waitstatus_to_exitcode(status) % 256)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(job, signal.SIGCONT)


def fail(why):
    print(why)
    sys.exit(1)


def stopped_and_called_back(command):
    """Stops a command with Ctrl-Z in a shell, calls it back and interrupts it; then one that another shell waits for."""
    called_back(command, "cofferdam.*\r\n")
    waited_for = shlex.quote(f"{command}; exit $?")
    called_back(f"sh -c {waited_for}", "sh -c.*\r\n")


def called_back(command, shown):
    screen = Screen(["/bin/bash", "--norc", "--noprofile", "-i"])
    screen.type("PS1='prompt''> '\n")
    screen.expect("prompt> ")
    screen.type(f"{command}\n")
    screen.expect("ready")
    screen.type(b"\x1a")
    screen.expect("Stopped")
    screen.expect("prompt> ")
    screen.type("echo the shell is he''re\n")
    screen.expect("the shell is here")
    screen.expect("prompt> ")
    screen.type("fg\n")
    screen.expect(shown)
    screen.passes_keys_on()
    screen.type(b"\x03")
    screen.expect("prompt> ")
    screen.type("echo code=$?\n")
    screen.expect("code=130")
    screen.type("exit 0\n")
    screen.ends(0)


# Says so when it goes on, and when it is ready.
GOES_ON_LOUDLY = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGCONT, lambda *_: os.write(1, b'went on'))\n"
    "signal.signal(2, signal.SIG_DFL); os.write(1, b'ready')\n"
    "while True: time.sleep(0.05)"
)


def stopped_three_times(screen):
    """Stops what goes on loudly by its key, calls it back each time, and interrupts it."""
    screen.expect("ready")
    for _ in range(3):
        screen.type(b"\x1a")
        status = screen.wait(os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            fail(f"not stopped: {status}")
        screen.modes_are_restored()
        if b"went on" in screen.seen:
            fail("it went on by itself")
        os.kill(screen.pid, signal.SIGCONT)
        screen.expect("went on")
        if termios.tcgetattr(screen.slave) == screen.before:
            fail("it did not take the terminal again")
    screen.type(b"\x03")


def stopped_by_no_key(screen):
    """The same where nobody could call it back: it goes on."""
    screen.expect("ready")
    screen.type(b"\x1a")
    screen.expect("went on")
    if os.waitpid(screen.pid, os.WUNTRACED | os.WNOHANG)[0]:
        fail("it was stopped or ended")
    screen.passes_keys_on()
    screen.type(b"\x03")
    screen.ends(130)
    screen.modes_are_restored()


