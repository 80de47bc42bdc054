# Goes before each of the other files. They are sent over standard input:
#
#     python3 - NAME FACTS
#
# Each attack is a function under a line `# attack NAME bare=works|refused|unsafe`, which says what
# becomes of it where nothing confines it (as an ordinary user): it works, the kernel refuses it
# there as well, or it must not be tried. `opts=a,b` adds options of `cofferdam run`.
# A function that returns has broken out; one that raises was stopped. What the host sees (files
# changed, connections made, processes left, the canary in the output) counts beside that.
# `# use NAME [write]` is what must work, `write` where the workspace can be written.
import ctypes, errno, fcntl, json, mmap, os, platform, resource, select, shutil, signal, socket
import stat, struct, subprocess, sys, threading, time

W = json.loads(sys.argv[2])
WS, OUT = W["workspace"], W["outside"]
libc = ctypes.CDLL(None, use_errno=True)


class Stopped(Exception):
    pass


def call(number, *args):
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(number), *args)
    if answer < 0:
        raise OSError(ctypes.get_errno(), f"call {number}")
    return answer


def reached(number, *args):
    """The kernel itself answers: with anything but the two errors of a filter."""
    try:
        return call(number, *args)
    except OSError as e:
        if e.errno in (errno.EPERM, errno.ENOSYS):
            raise
        return f"reached the kernel: {e}"


def need(claim, why):
    if not claim:
        raise Stopped(why)
    return claim


def first(tries):
    """The first of several ways that works."""
    last = Stopped("nothing to try")
    for t in tries:
        try:
            return t()
        except (OSError, Stopped) as e:
            last = e
    raise last


def read(path, most=1 << 20):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


def write(path, data=b"attacked\n", flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND):
    fd = os.open(path, flags, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
    return f"wrote {path}"


def show(data):
    """What was read goes to the output, where the host looks for its canary."""
    sys.stdout.write(data.decode("utf-8", "replace") if isinstance(data, bytes) else str(data))
    sys.stdout.flush()
    return "shown"


def in_child(act):
    """Runs in a child; what it raises comes back."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            text = "ok " + str(act())
        except (OSError, Stopped) as e:
            text = "no " + str(e)
        os.write(w, text.encode())
        os._exit(0)
    os.close(w)
    text = os.read(r, 65536).decode()
    _, status = os.waitpid(pid, 0)
    if text.startswith("ok "):
        return text
    raise Stopped(text or f"child ended with {status}")


def main():
    act = globals()[sys.argv[1].replace(".", "_").replace("-", "_")]
    try:
        print("\n@@done@@", act(), flush=True)
    except (OSError, ValueError, Stopped) as e:
        print("\n@@stopped@@", type(e).__name__, e, flush=True)
