# The scenes of `run`. `screen.py` stands before this.

def run(*words, **size):
    return Screen([PROGRAM, "run", *words], **size)


def sh(line, *options, **size):
    return run(*options, "--", "/bin/bash", "-c", line, **size)


def a_terminal_of_its_own():
    screen = sh("tty; test -t 0 -a -t 1 -a -t 2 && echo three; ps -o tpgid= -p $$ | tr -d ' '; echo $$")
    screen.expect(r"/dev/pts/0\r\n")
    screen.expect(r"three\r\n")
    screen.ends(0)
    screen.modes_are_restored()


def size():
    # Not a shell, which loses a signal that comes while it serves another.
    line = (
        "import os, signal, time\n"
        "def say(*_): os.write(1, b'%d x %d.' % os.get_terminal_size(0)[::-1])\n"
        "signal.signal(signal.SIGWINCH, say); signal.signal(2, signal.SIG_DFL); say()\n"
        "while True: time.sleep(0.05)"
    )
    screen = run("--", "/usr/bin/python3", "-c", line, rows=31, columns=97)
    screen.expect(r"31 x 97\.")
    for rows, columns in ((44, 121), (12, 34), (200, 300), (1, 1)):
        screen.resize(rows, columns)
        screen.expect(rf"{rows} x {columns}\.")
    screen.type(b"\x03")
    screen.ends(130)
    unknown = sh("stty size", rows=0, columns=0)
    unknown.expect(r"24 80\r\n")
    unknown.ends(0)


def keys_that_kill():
    for key, code in ((b"\x03", 130), (b"\x1c", 131)):
        # Not a shell, which has a mind of its own about these keys.
        line = "import signal; signal.signal(2, signal.SIG_DFL); print('ready'); signal.pause()"
        screen = run("--", "/usr/bin/python3", "-u", "-c", line)
        screen.expect("ready")
        screen.type(key)
        screen.ends(code)
        screen.modes_are_restored()


def a_key_that_stops():
    words = ["--", "/usr/bin/python3", "-c", GOES_ON_LOUDLY]
    screen = run(*words, as_job=True)
    stopped_three_times(screen)
    screen.ends(130)
    screen.modes_are_restored()
    stopped_by_no_key(run(*words))
    if os.geteuid() == 0:
        # The leaders of its process group and its session are outside, as those of `docker exec` are.
        line = shlex.join([PROGRAM, "run", *words])
        alone = ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c"]
        stopped_by_no_key(Screen([*alone, f"{line}; exit $?"]))


def stopped_from_a_shell_and_called_back():
    stopped_and_called_back(
        f"{PROGRAM} run -- /bin/bash -c 'echo rea''dy; sleep 100; echo went on'"
    )


def a_shell_with_job_control():
    screen = run("--env", "PS1=inside> ", "--", "/bin/bash", "--norc", "--noprofile", "-i")
    screen.expect("inside> ")
    if b"no job control" in screen.seen:
        fail(f"no job control: {screen.seen!r}")
    screen.type("sleep 100\n")
    time.sleep(0.3)
    screen.type(b"\x1a")
    screen.expect("Stopped")
    screen.expect("inside> ")
    screen.type("jobs\n")
    screen.expect(r"\[1\]\+  Stopped +sleep 100")
    screen.type("bg\n")
    screen.expect(r"\[1\]\+ sleep 100 &")
    screen.type("fg\n")
    screen.expect("sleep 100\r\n")
    time.sleep(0.3)
    screen.type(b"\x03")
    screen.expect("inside> ")
    screen.type("echo $((6*7)) of $?\n")
    screen.expect("42 of 130")
    screen.type("sleep 100 & kill %1; wait; exit 5\n")
    screen.ends(5)
    screen.modes_are_restored()


def modes_come_back():
    for options, line, code in (
        ([], "true", 0),
        ([], "stty raw -echo; exit 3", 3),
        (["--timeout", "300ms"], "stty raw -echo; sleep 100", 124),
        ([], "kill -9 $$", 137),
        (["--max-output", "10K"], "yes", 137),
    ):
        screen = sh(line, *options)
        screen.ends(code)
        screen.modes_are_restored()
    missing = run("--", "no-such-program")
    missing.ends(127)
    missing.modes_are_restored()
    for number in (signal.SIGTERM, signal.SIGHUP):
        screen = sh("echo ready; exec sleep 100")
        screen.expect("ready")
        os.kill(screen.pid, number)
        screen.ends(128 + number)
        screen.modes_are_restored()


def signals_at_any_moment():
    for number in range(60):
        screen = run("--", "/bin/sleep", "100")
        time.sleep(number % 30 / 1000)
        os.kill(screen.pid, signal.SIGTERM)
        status = screen.wait()
        # Before it looks after signals, the signal ends it as it ends any program.
        if status not in (signal.SIGTERM, (128 + signal.SIGTERM) << 8):
            fail(f"wait status {status} after {number % 30} ms")
        screen.modes_are_restored()


def what_is_typed_arrives():
    screen = run("--", "/bin/cat")
    screen.type("hello\n")
    screen.expect("hello\r\nhello\r\n")
    screen.type(b"\x04")
    screen.ends(0)
    line = "stty raw -echo; echo ready; head -c 9 | od -An -tx1; stty sane"
    screen = sh(line)
    screen.expect("ready")
    screen.type(b"\x03\x1a\x1c\x04\x00\x11\x13\xff\r")
    screen.expect(" 03 1a 1c 04 00 11 13 ff 0d")
    screen.ends(0)


def much_output_arrives():
    screen = run("--", "/usr/bin/seq", "1", "100000")
    screen.ends(0)
    numbers = [int(line) for line in screen.seen.split(b"\r\n") if line]
    if numbers != list(range(1, 100001)):
        fail(f"{len(numbers)} lines of 100000 arrived")


def forbidden_or_forced():
    screen = run("-T", "--shell", "tty; tty <&1; echo end")
    screen.expect("not a tty\r\nnot a tty\r\nend\r\n")
    screen.ends(0)
    words = [PROGRAM, "run", "-t", "--shell", "tty; test -t 1 && test -t 2 && echo all"]
    forced = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    if forced.stdout != b"/dev/pts/0\r\nall\r\n" or forced.returncode != 0:
        fail(f"-t without a terminal: {forced}")


def in_the_background():
    screen = Screen(["/bin/bash", "--norc", "--noprofile", "-i"])
    line = "sleep 0.3; echo do''ne; test -t 0 || echo no term''inal"
    screen.type(f'{PROGRAM} run -- sh -c "{line}" & wait; echo co""de $?\n')
    screen.expect("done")
    screen.expect("no terminal")
    screen.expect("code 0")
    screen.type("exit\n")
    screen.ends(0)


def not_all_three():
    for cut in ("</dev/null", ">out", "2>err"):
        line = f"{PROGRAM} run --shell 'test -t 0 || test -t 1 || test -t 2 || echo none' {cut}; cat out 2>&-"
        screen = Screen(["/bin/sh", "-c", line])
        screen.expect("none")
        screen.wait()
        screen.modes_are_restored()


def nothing_is_left_of_the_callers_terminal():
    # The host's terminal cannot be reached: not by its name, not by TIOCSTI, not by /dev/tty.
    line = "tty </dev/tty; ls /dev/pts; " \
           "python3 -c 'import fcntl,termios;fcntl.ioctl(0,termios.TIOCSTI,b\"x\")' 2>&1 | tail -1"
    screen = sh(line)
    screen.expect(r"/dev/(pts/0|tty)\r\n")
    screen.expect(r"0 +ptmx\r\n")
    screen.expect("(PermissionError|OSError)")
    screen.ends(0)


globals()[SCENE]()
