# The scenes of sessions. `screen.py` stands before this.

LEAVE = b"\x10\x11"


def say(*words, code=0):
    done = subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE)
    if done.returncode != code:
        fail(f"{words}: {done}")
    return done.stdout.decode()


def create():
    say("create", "--name", "s")


def exec_(*words, **size):
    return Screen([PROGRAM, "exec", "s", *words], **size)


def keys_and_size():
    create()
    line = "tty; stty size; trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done"
    screen = exec_("--", "/bin/bash", "-c", line, rows=31, columns=97)
    screen.expect(r"/dev/pts/\d+\r\n31 97\r\n")
    screen.expect("ready")
    time.sleep(0.2)
    screen.resize(20, 50)
    os.kill(screen.pid, signal.SIGWINCH)
    screen.expect("20 50")
    screen.ends(5)
    screen.modes_are_restored()
    screen = exec_("--", "/bin/bash", "-c", "echo $TERM; read x; echo got $x; sleep 60")
    screen.expect("xterm")
    screen.type("word\r")
    screen.expect("got word")
    screen.type(b"\x03")
    screen.ends(130)
    screen.modes_are_restored()


def left_and_come_back_to():
    create()
    line = "stty size; while read x; do echo got $x; done; echo over"
    say("exec", "s", "-d", "-t", "--id", "talk", "--", "/bin/bash", "-c", line)
    screen = Screen([PROGRAM, "attach", "s", "talk"])
    # What it was begun with, unless it looks only now.
    screen.expect("24 80|30 100")
    screen.type("one\r")
    screen.expect("got one")
    screen.type(LEAVE)
    screen.expect("talk is left running")
    screen.ends(0)
    screen.modes_are_restored()
    screen = Screen([PROGRAM, "attach", "s", "talk", "--detach-keys", "ctrl-]"])
    screen.expect("got one")
    screen.type(b"\x10two\r")
    screen.expect("got .*two")
    other = Screen([PROGRAM, "attach", "s", "talk", "--offset", "7"])
    other.expect("two")
    screen.type(b"\x1d")
    screen.ends(0)
    other.type(b"\x04")
    other.expect("over")
    other.ends(0)
    other.modes_are_restored()
    say("wait", "s", "talk")


def a_shell_stays_open():
    create()
    screen = Screen([PROGRAM, "shell", "s"])
    screen.expect(r"[$#] ")
    screen.type("x=5; cd /tmp; f() { echo of $x; }; echo mar''ked\r")
    screen.expect("marked")
    screen.type(LEAVE)
    screen.ends(0)
    screen.modes_are_restored()
    screen = Screen([PROGRAM, "shell", "s"])
    screen.expect("marked")
    screen.type("f; pwd\r")
    screen.expect(r"of 5\r\n/tmp")
    os.kill(screen.pid, signal.SIGKILL)
    screen.wait()
    other = Screen([PROGRAM, "shell", "s", "--session", "other"])
    other.expect(r"[$#] ")
    other.type('echo "<$x>"; exit 3\r')
    other.expect(r"<>\r\n")
    other.ends(0)
    screen = Screen([PROGRAM, "shell", "s"])
    screen.expect("of 5")
    screen.type("exit\r")
    screen.ends(0)
    screen = Screen([PROGRAM, "shell", "s"])
    screen.expect(r"[$#] ")
    screen.type('echo "<$x>"; exit\r')
    screen.expect(r"<>\r\n")
    screen.ends(0)
    screen.modes_are_restored()


def the_key_that_stops():
    create()
    words = ["--", "/usr/bin/python3", "-c", GOES_ON_LOUDLY]
    screen = exec_(*words, as_job=True)
    stopped_three_times(screen)
    screen.ends(130)
    screen.modes_are_restored()
    stopped_by_no_key(exec_(*words))
    say("exec", "s", "-d", "-t", "--id", "stops", *words)
    screen = Screen([PROGRAM, "attach", "s", "stops"], as_job=True)
    stopped_three_times(screen)
    screen.ends(0)
    screen.modes_are_restored()


def stopped_from_a_shell():
    create()
    stopped_and_called_back(
        f"{PROGRAM} exec s -- /bin/bash -c 'echo rea''dy; sleep 1; sleep 100'"
    )


def modes_come_back():
    create()
    line = "echo ready; sleep 60"
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        screen = exec_("--", "/bin/bash", "-c", line)
        screen.expect("ready")
        os.kill(screen.pid, number)
        screen.ends(128 + number)
        screen.modes_are_restored()
    say("exec", "s", "-d", "-t", "--id", "stays", "--", "/bin/bash", "-c", line)
    screen = Screen([PROGRAM, "attach", "s", "stays"], as_job=True)
    screen.expect("ready")
    screen.signal_job(signal.SIGTSTP)
    status = screen.wait(os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        fail(f"it was not stopped: {status}")
    screen.modes_are_restored()
    os.kill(screen.pid, signal.SIGCONT)
    screen.passes_keys_on()
    screen.signal_job(signal.SIGTERM)
    screen.ends(0)
    screen.modes_are_restored()
    say("signal", "s", "stays", "KILL")
    say("wait", "s", "stays", code=137)


def stopped_under_a_shell():
    create()
    for words in (["shell", "s"], ["attach", "s", "terminal-other-1"]):
        if words[0] == "attach":
            other = Screen([PROGRAM, "shell", "s", "--session", "other"])
            other.expect(r"[$#] ")
            other.type(LEAVE)
            other.ends(0)
        screen = Screen([PROGRAM, *words])
        screen.expect(r"[$#] ")
        say("stop", "s")
        screen.expect(r"cofferdam:.* canceled: session [0-9a-f]+ was stopped\r\n")
        screen.ends(130)
        screen.modes_are_restored()


globals()[SCENE]()
