"""The blocking client against a real server."""

from __future__ import annotations

import io
import os
import signal
import socket
import tarfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator
from typing import Any, cast
from unittest import mock

import httpcore
import httpx
from served import Served

from cofferdam import (
    Client,
    CofferdamError,
    CommandFailed,
    ConflictError,
    DeniedError,
    NotFoundError,
    OptionNameError,
    OptionValueError,
    ServerError,
    TerminalSize,
    UnavailableError,
    UsageError,
    WaitTimeout,
    models,
)
from cofferdam import _frames as frames


def _until(output: Iterator[bytes], text: bytes) -> bytes:
    seen = b""
    while text not in seen:
        seen += next(output)
    return seen


_PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 3\r\n\r\n<p>"
_AWAY = b"HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n"


def _other(answer: bytes) -> str:
    """The address of something that says this to whoever asks, and nothing more."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                # To the end of whoever asked.
                connection.recv(1)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


class _Gone:
    """A connection to somebody who is there no more."""

    def write(self, data: bytes, timeout: float) -> None:
        raise httpcore.WriteError("Broken pipe")

    def read(self, most: int, timeout: float) -> bytes:
        raise httpcore.ReadError("Connection reset by peer")


class _Interrupted(httpx.BaseTransport):
    """Somebody types Ctrl-C when a sandbox is made, and before the answer is there."""

    def __init__(self) -> None:
        self._inner = httpx.HTTPTransport()
        self._is_over = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = self._inner.handle_request(request)
        if request.method in ("POST", "PUT") and not self._is_over:
            self._is_over = True
            response.close()
            raise KeyboardInterrupt
        return response

    def close(self) -> None:
        self._inner.close()


class Blocking(unittest.TestCase):
    served: Served
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.served = Served()
        cls.addClassCleanup(cls.served.close)
        cls.client = Client(cls.served.url)
        cls.addClassCleanup(cls.client.close)

    def test_a_sandbox_of_a_block_ends_with_it(self) -> None:
        with self.client.sandbox() as box:
            self.assertEqual(box.run(["echo", "hello"]).check().text, "hello\n")
            self.assertIs(box.refresh().phase, models.Phase.RUNNING)
        with self.assertRaises(NotFoundError):
            box.refresh()

    def test_a_name_leads_to_no_other_route(self) -> None:
        with self.client.sandbox() as box:
            for name in ("..", ".", ""):
                for ask in (
                    self.client.get,
                    self.client.ensure,
                    self.client.remove_secret,
                    self.client.tools,
                    box.get_exec,
                    box.shell,
                    box.snapshots.remove,
                    box.snapshots.export,
                ):
                    with self.subTest(name=name, ask=ask), self.assertRaises(NotFoundError) as told:
                        ask(name)
                    self.assertIsNone(told.exception.status, "nothing was asked")
                    self.assertIsNotNone(told.exception.hint)
            self.assertIs(self.client.get(box.id).refresh().phase, models.Phase.RUNNING)

    def test_every_error_is_one_of_this_client(self) -> None:
        closed = Client(self.served.url)
        closed.close()
        anything: Any = object()
        with self.client.sandbox() as box:
            sleeps = box.exec("sleep 100")
            cases: list[tuple[Callable[[], object], type[CofferdamError]]] = [
                (lambda: Client("ftp://x"), OptionValueError),
                (lambda: Client("127.0.0.1:7070"), OptionValueError),
                (lambda: Client("http://x:99999"), OptionValueError),
                (lambda: Client("http://127.0.0.1:1").get("x"), UnavailableError),
                (lambda: Client("unix:/nowhere").get("x"), UnavailableError),
                (lambda: Client(_other(b""), timeout_s=0.2).get("x"), UnavailableError),
                (lambda: Client(_other(_PAGE)).get("x"), ServerError),
                (lambda: Client(_other(_AWAY)).get("x"), ServerError),
                (lambda: closed.get("x"), UsageError),
                (lambda: self.client.create(labels=anything), OptionNameError),
                (lambda: self.client.create(labels={"a": anything}), OptionNameError),
                (lambda: self.client.run(anything), OptionNameError),
                (lambda: box.exec(["true", anything]), OptionNameError),
                (lambda: box.files.read(anything), OptionNameError),
                (lambda: box.files.edit("f", anything), OptionNameError),
                (lambda: box.exec("true", key="a\nb"), OptionValueError),
                (lambda: self.client.run("true", key=" a"), OptionValueError),
                (lambda: self.client.create(key="a\0b"), OptionValueError),
                (lambda: box.files.write("f", "x", if_match="a\nb"), OptionValueError),
                (lambda: box.network.answer("x", anything), OptionValueError),
                (lambda: sleeps.read(anything), OptionValueError),
                (lambda: list(sleeps.lines(cast(Any, "foo"))), OptionValueError),
                (lambda: sleeps.signal(anything), OptionValueError),
                (lambda: sleeps.wait(0.01), WaitTimeout),
            ]
            for fails, kind in cases:
                with self.subTest(kind=kind), self.assertRaises(kind) as told:
                    fails()
                self.assertIsInstance(told.exception, CofferdamError)
                if issubclass(kind, UsageError):
                    self.assertFalse(told.exception.retryable)
                self.assertTrue(told.exception.hint or told.exception.status, told.exception)
            sleeps.kill()

    def test_one_that_was_there_stays(self) -> None:
        labels = {"for": "tests", "of": "a,b=c\\d"}
        made = self.client.ensure("stays", labels=labels)
        with self.client.sandbox("stays", labels=labels) as box:
            self.assertEqual(box.id, made.id)
        self.assertEqual([box.name for box in self.client.sandboxes(labels)], ["stays"])
        self.assertEqual(self.client.get("stays").id, made.id)
        made.delete()
        made.delete(missing_ok=True)
        with self.client.sandbox("kept", keep=True) as kept:
            pass
        kept.refresh()
        kept.delete()

    def test_output_comes_as_it_is_written_byte_for_byte(self) -> None:
        with self.client.sandbox() as box:
            # U+2028 ends a line for Python, and not for streams of events.
            line = r"printf 'a\342\200\250b\n'; printf '\377\0' >&2; cat; exit 3"
            started = box.exec(line, stdin=True)
            parts = started.output()
            first = next(parts)
            started.send("more")
            started.close_input()
            kept = {"stdout": b"", "stderr": b""}
            for part in [first, *parts]:
                self.assertEqual(part.offset, len(kept[part.stream]))
                kept[part.stream] += part.data
            self.assertEqual(kept, {"stdout": "a\u2028b\nmore".encode(), "stderr": b"\xff\0"})
            self.assertEqual((started.exit_code, started.has_ended), (3, True))
            self.assertEqual(list(started.lines()), ["a\u2028b", "more"])
            self.assertEqual(started.read("stdout", offset=2, limit=3), "\u2028b".encode()[1:4])
            again = list(started.output(stdout=6, stderr=1))
            self.assertEqual({part.stream: part.data for part in again}["stdout"], b"more")

    def test_a_run_has_all_and_counts_what_it_leaves_out(self) -> None:
        with self.client.sandbox() as box:
            ran = box.run("head -c 100000 /dev/zero; echo no >&2; exit 4", capture_bytes=10)
            self.assertEqual((len(ran.stdout), ran.omitted), (10, {"stdout": 99990, "stderr": 0}))
            with self.assertRaisesRegex(CommandFailed, "code 4: no"):
                ran.check()
            for never in (box.run(["no-such"]), self.client.run(["no-such"])):
                with self.assertRaisesRegex(CommandFailed, "not_started, code 127: .*no-such") as e:
                    never.check()
                self.assertIn("no-such", e.exception.detail or "")
            with self.assertRaisesRegex(CommandFailed, "not_started, code 125: .*/no-such"):
                box.run("true", cwd="/no-such").check()
            late = box.run(["sleep", "100"], timeout_ms=50)
            self.assertEqual((late.ending, late.exit_code), ("timed_out", 124))
        once = self.client.run("echo $X; cat /nothing", env={"X": "1"})
        self.assertEqual((once.text, once.exit_code), ("1\n", 1))
        self.assertIn(b"/nothing", once.stderr)

    def test_a_key_starts_a_command_once(self) -> None:
        with self.client.sandbox() as box:
            first = box.exec("echo x >> ran", key="once")
            first.wait()
            self.assertEqual(box.exec("echo x >> ran", key="once").id, first.id)
            self.assertEqual(box.files.read_text("ran"), "x\n")
            with self.assertRaises(ConflictError):
                box.exec("echo y >> ran", key="once")
            self.assertEqual([one.id for one in box.execs()], [first.id])
            self.assertEqual(box.get_exec(first.id).exit_code, 0)

    def test_what_is_made_with_a_key_is_made_once(self) -> None:
        made = [self.client.create(key="made", labels={"for": "keys"}) for _ in range(2)]
        self.assertEqual(made[0].id, made[1].id)
        with self.assertRaises(ConflictError):
            self.client.create(key="made")
        made[0].delete()
        ran = [self.client.run("cat /proc/sys/kernel/random/uuid", key="ran") for _ in range(2)]
        self.assertEqual(ran[0].check().text, ran[1].check().text)
        self.assertNotEqual(self.client.run("cat /proc/sys/kernel/random/uuid").text, ran[0].text)

    def test_a_command_has_its_id_its_secrets_and_a_receipt(self) -> None:
        self.client.put_secret("GIVEN", "a-value")
        self.addCleanup(self.client.remove_secret, "GIVEN")
        workspace = str(self.served.workspace)
        manifest = {"version": 1, "entries": [{"type": "file", "path": "given", "text": "x"}]}
        with self.client.sandbox(workspace=workspace, copy_on_write=True, manifest=manifest) as box:
            self.assertEqual(box.files.read("given"), b"x")
            line = "wc -c < /run/secrets/GIVEN; echo y > made"
            ran = box.run(line, id="named", secret_files=["GIVEN"], receipt=True)
            self.assertEqual(ran.check().text, "7\n")
            self.assertEqual(box.exec(line, id="named", secret_files=["GIVEN"]).id, "named")
            receipt = box.get_exec("named").receipt()
            seen = receipt.seen_by_host.files.added
            self.assertEqual([one.path for one in seen or []], ["made"])
        with self.assertRaises(DeniedError):
            self.client.create(image="an-image-that-nobody-allowed", pull="never")
        kept = self.client.run("exit 3", on_failure="stop", max_output_bytes=100, id="once")
        assert isinstance(kept.report, models.RunReport)
        assert isinstance(kept.report.session, str)
        self.client.get(kept.report.session).delete()

    def test_a_command_is_killed_where_its_run_is_given_up(self) -> None:
        with self.client.sandbox() as box:
            main = threading.main_thread().ident
            assert main is not None

            def interrupt() -> None:
                while not box.execs():
                    time.sleep(0.01)
                signal.pthread_kill(main, signal.SIGINT)

            other = threading.Thread(target=interrupt)
            other.start()
            with self.assertRaises(KeyboardInterrupt):
                box.run(["sleep", "100"])
            other.join()
            self.assertEqual(box.execs()[0].wait(timeout_s=30).exit_code, 137)

    def test_a_sandbox_that_is_given_up_while_it_is_made_is_gone(self) -> None:
        labels = {"for": "giving-up"}
        was_there = self.client.ensure("was-there", labels=labels)
        self.addCleanup(was_there.delete)
        for name in (None, "was-there"):
            with (
                Client(self.served.url, transport=_Interrupted()) as client,
                self.assertRaises(KeyboardInterrupt),
                client.sandbox(name, labels=labels),
            ):
                pass
            left = [box.id for box in self.client.sandboxes(labels)]
            self.assertEqual(left, [was_there.id])

    def test_signals_and_waiting(self) -> None:
        with self.client.sandbox() as box:
            sleeps = box.exec(["sleep", "100"])
            with self.assertRaises(TimeoutError):
                sleeps.wait(timeout_s=0.05)
            with self.assertRaisesRegex(UsageError, "KILL"):
                sleeps.signal("TREM")
            sleeps.signal("TERM")
            self.assertEqual(sleeps.wait(timeout_s=60).exit_code, 128 + signal.SIGTERM)
            size: TerminalSize = {"rows": 5, "columns": 40}
            line = "read x; until stty size | grep '7 50'; do sleep 0.01; done"
            shows = box.exec(line, terminal=size, stdin=True, timeout_ms=60_000)
            shows.resize(7, 50)
            shows.send("\n")
            self.assertIn("7 50", "".join(part.text for part in shows.output()))

    def test_secrets_are_names_alone(self) -> None:
        self.assertEqual(self.client.put_secret("TOKEN", "a-value").name, "TOKEN")
        self.client.put_secret("TOKEN", b"another")
        self.assertIn("TOKEN", [secret.name for secret in self.client.secrets()])
        self.client.remove_secret("TOKEN")
        with self.assertRaises(NotFoundError):
            self.client.remove_secret("TOKEN")

    def test_a_terminal(self) -> None:
        with self.client.sandbox() as box:
            with box.terminal(rows=5, columns=40) as terminal:
                output = iter(terminal)
                terminal.send("stty size; x=5\n")
                seen = _until(output, b"5 40")
                terminal.resize(7, 50)
                terminal.send("stty size\n")
                seen += _until(output, b"7 50")
            # The command goes on, and nothing is told twice to who comes back.
            offset = terminal.offset
            self.assertEqual(offset, len(seen))
            with box.terminal_of(terminal.exec, offset) as again:
                again.send("echo <$x>; exit 4\n".replace("<", "'<'").replace(">", "'>'"))
                rest = b"".join(again)
            self.assertIn(b"<5>", rest)
            self.assertNotIn(b"7 50", rest)
            self.assertEqual(again.exec.exit_code, 4)
            self.assertEqual(seen + rest, again.exec.read("stdout"))

    def test_a_terminal_outlives_its_connection_and_its_server(self) -> None:
        with self.client.sandbox() as box:
            line = "echo one; until [ -e go ]; do sleep 0.01; done; echo two; read x; exit $x"
            with box.terminal(line) as terminal:
                output = iter(terminal)
                seen = _until(output, b"one\r\n")
                self.served.kill()
                self.served.again()
                box.files.write("go", "")
                seen += _until(output, b"two\r\n")
                terminal.send("6\n")
                seen += b"".join(output)
            self.assertEqual(terminal.exec.exit_code, 6)
            self.assertEqual(seen, terminal.exec.read("stdout"))

    def test_a_terminal_is_typed_at_again_after_its_connection_broke(self) -> None:
        with self.client.sandbox() as box, box.terminal("cat") as terminal:
            output = iter(terminal)
            terminal.send("one\n")
            seen = _until(output, b"one\r\none\r\n")
            self.served.kill()
            self.served.again()
            failed = 0
            for _ in range(20):
                try:
                    terminal.send("two\n")
                except UnavailableError:
                    failed += 1
                time.sleep(0.02)
            self.assertIn(failed, (1, 2))
            terminal.send("three\n")
            seen += _until(output, b"three\r\nthree\r\n")
            # What a server that is gone said last is answered to nobody.
            terminal._messages.append((frames.PING, b""))
            terminal._stream = _Gone()
            box.get_exec(terminal.exec.id).signal("TERM")
            seen += b"".join(output)
            self.assertEqual(seen, terminal.exec.read("stdout"))
            self.assertTrue(terminal.exec.has_ended)

    def test_an_archive_that_is_not_whole_is_an_error(self) -> None:
        with self.client.sandbox() as box:
            for number in range(4):
                box.files.write(f"d/{number}", b"x" * 1_000_000)
            whole = b"".join(box.files.export("d"))
            self.assertGreater(len(whole), 4_000_000)
            came = 0
            with self.assertRaises(UnavailableError) as raised:
                for piece in box.files.export("d", max_bytes=2_500_000):
                    came += len(piece)
            self.assertLess(came, len(whole))
            self.assertIn("broke off", str(raised.exception))
            self.assertTrue(raised.exception.hint)

    def test_files(self) -> None:
        with self.client.sandbox() as box:
            files = box.files
            done = files.write("a/b.txt", "one\ntwo\n")
            self.assertTrue(done.created)
            assert isinstance(done.sha256, str)
            self.assertEqual(files.read_text("a/b.txt"), "one\ntwo\n")
            self.assertEqual(files.read("a/b.txt", offset=2, length=3), b"e\nt")
            with self.assertRaises(CofferdamError) as raised:
                files.write("a/b.txt", "x", if_match="0" * 64)
            self.assertEqual(raised.exception.status, 412)
            with self.assertRaises(CofferdamError):
                files.write("a/b.txt", "x", if_absent=True)
            files.write("a/b.txt", iter([b"three", b"\n"]), if_match=done.sha256, mode="600")
            self.assertEqual(files.stat("a/b.txt").mode, "600")
            files.append("a/b.txt", b"four\n")
            self.assertEqual(files.lines("a/b.txt", offset=1).content, "2|four")
            with self.assertRaises(ConflictError) as refused:
                files.edit("a/b.txt", {"old": "nothing", "new": "x"})
            assert refused.exception.result is not None
            self.assertEqual(refused.exception.result["report"]["edits"][0]["outcome"], "not_found")
            self.assertTrue(files.edit("a/b.txt", {"old": "four", "new": "five"}).changed)
            files.patch("--- a/a/b.txt\n+++ b/a/b.txt\n@@ -1 +1 @@\n-three\n+3\n")
            self.assertEqual(b"".join(files.download("a/b.txt")), b"3\nfive\n")
            files.copy("a/b.txt", "a/c.txt")
            files.move("a/c.txt", "a/d.txt")
            files.mkdir("a/e")
            files.chmod("a/d.txt", "640")
            names = sorted(entry.path or "" for entry in files.list("a"))
            self.assertEqual([name.rpartition("/")[2] for name in names], ["b.txt", "d.txt", "e"])
            self.assertEqual(len(files.glob("**/*.txt", kinds=["file"])), 2)
            found = files.grep("f.ve", paths=["a"], case="sensitive")
            self.assertEqual((found.matches, found.files[0].lines[0].text), (2, "five"))
            files.remove("a", recursive=True)
            with self.assertRaises(NotFoundError):
                files.stat("a")

    def test_names_that_are_no_text(self) -> None:
        with self.client.sandbox() as box:
            box.files.write(b"\xff\n", b"odd")
            self.assertEqual(box.files.read(b"\xff\n"), b"odd")
            self.assertEqual(box.run("ls | wc -c").text, "3\n")
            [entry] = box.files.list()
            self.assertIsInstance(entry.path_base64, str)

    def test_a_part_of_a_file_is_that_part(self) -> None:
        with self.client.sandbox() as box:
            read = box.files.read
            box.files.write("six", "abcdef")
            box.files.write("none", "")
            parts = [
                (read("six", offset=4), b"ef"),
                (read("six", offset=1, length=2), b"bc"),
                (read("six", offset=4, length=100), b"ef"),
                (read("six", length=2), b"ab"),
                (read("six", offset=2, length=0), b""),
                (read("six", offset=6), b""),
                (read("six", offset=7, length=1), b""),
                (read("none", length=100), b""),
                (read("none", offset=1), b""),
                (read("none"), b""),
            ]
            for number, (found, expected) in enumerate(parts):
                self.assertEqual(found, expected, number)
            odd: Any = "1"
            for offset, length in ((-2, None), (0, -2), (3, -2), (-1, 1), (odd, None), (0, odd)):
                with self.subTest((offset, length)), self.assertRaises(OptionValueError):
                    read("six", offset=offset, length=length)
            for length in (0, 1):
                self.assertRaises(NotFoundError, read, "missing", length=length)

    def test_what_is_no_content_empties_no_file(self) -> None:
        with self.client.sandbox() as box:
            box.files.write("kept", "precious")
            reads = box.exec("cat", stdin=True)
            with box.terminal("cat") as terminal:

                def asked(it: Any) -> list[Callable[[], object]]:
                    return [
                        lambda: box.files.write("kept", it),
                        lambda: box.files.append("kept", it),
                        lambda: box.files.import_("kept", it, replace=True),
                        lambda: box.files.patch(it),
                        lambda: box.snapshots.import_(it),
                        lambda: self.client.put_secret("NOTHING", it),
                        lambda: reads.send(it, close=True),
                        lambda: terminal.send(it),
                    ]

                for nothing in (None, {}, {"a": 1}, set[str](), 7, object()):
                    for number, asks in enumerate(asked(nothing)):
                        with self.subTest(nothing=nothing, number=number):
                            self.assertRaises(OptionNameError, asks)
            with self.assertRaises(OptionValueError):
                box.files.write("kept", "half a character: \ud800")
            self.assertEqual(box.files.read("kept"), b"precious")
            self.assertEqual(self.client.secrets(), [])
            # What is bytes by another name is taken, and so is nothing that is meant.
            for data in (
                bytearray(b"some"),
                memoryview(b"awesome")[3:],
                memoryview(b"s-o-m-e")[::2],
            ):
                box.files.write("taken", data)
                box.files.append("taken", data)
                self.assertEqual(box.files.read("taken"), b"somesome")
            reads.send(bytearray(b"some"), close=True)
            self.assertEqual(b"".join(part.data for part in reads.output()), b"some")
            for empty in (b"", "", iter(list[bytes]())):
                self.assertEqual(box.files.write("taken", empty).bytes_, 0)

    def test_archives(self) -> None:
        with self.client.sandbox() as box:
            box.files.write("d/x", b"1")
            archive = b"".join(box.files.export("d"))
            with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                self.assertTrue(any(name.endswith("x") for name in tar.getnames()))
            self.assertEqual(box.files.import_("e", archive).files, 1)

    def test_a_watch_tells_what_happens(self) -> None:
        with self.client.sandbox() as box:
            events = box.files.watch()
            self.assertEqual(next(events).event, "ready")
            box.files.write("seen", b"")
            while next(events).path != "seen":
                pass
            events.close()  # type: ignore[attr-defined]

    def test_layers_and_points(self) -> None:
        workspace = str(self.served.workspace)
        with self.client.sandbox(workspace=workspace, copy_on_write=True) as box:
            box.run("echo new > kept; echo x > added").check()
            self.assertEqual(sorted(change.path or "" for change in box.diff()), ["added", "kept"])
            self.assertIn(b"+new", box.patch(path="kept"))
            self.assertEqual(len(box.hunks(path="kept")[0].hunks), 1)
            taken = box.snapshot("tested")
            self.assertEqual([one.label for one in box.snapshots.list()], ["tested"])
            other = box.fork("other", "tested")
            self.assertEqual(other.files.read_text("kept"), "new\n")
            other.delete()
            file = box.snapshots.export("tested")
            imported = box.snapshots.import_(file, "again")
            self.assertEqual(imported.snapshot.label, "again")
            box.run("rm kept").check()
            box.undo()
            self.assertEqual(box.files.read_text("kept"), "new\n")
            box.snapshots.restore(taken.snapshot)
            self.assertGreater(len(box.history().points), 2)
            box.snapshots.remove("again")
            self.assertEqual(len(box.apply(["kept"]).applied), 1)
            self.assertEqual(len(box.discard().discarded), 1)
        self.assertEqual((self.served.workspace / "kept").read_text(), "new\n")

    def test_a_shell_keeps_its_state(self) -> None:
        with self.client.sandbox() as box:
            shell = box.shell()
            shell.run("cd /tmp; x=1")
            self.assertEqual(shell.run("pwd; echo $x; false"), (b"/tmp\n1\n", 1))
            output, code = shell.run("head -c 700000 /dev/zero | tr '\\0' a")
            self.assertEqual((len(output), code), (700000, 0))
            self.assertEqual([one.name for one in box.shells()], ["main"])
            shell.terminate()

    def test_events_are_told_again(self) -> None:
        with self.client.sandbox(ttl_ms=600_000) as box:
            kinds = [event.kind for event in box.events(follow=False)]
            self.assertIn("provisioned", kinds)
            box.pause()
            self.assertIs(box.phase, models.Phase.PAUSED)
            box.resume()
            box.extend(1000)
            events = self.client.events(sandbox=box.id)
            seen = [next(events)]
            while seen[-1].kind != "resumed":
                seen.append(next(events))
            self.assertEqual([event.kind for event in seen[: len(kinds)]], kinds)
            after = next(box.events(seen[0].seq))
            self.assertEqual(after.seq, seen[1].seq)
            box.stop()

    def test_tools(self) -> None:
        with self.client.sandbox() as box:
            pack = self.client.tools("cofferdam")
            self.assertIn("shell_exec", [tool.name for tool in pack.tools])
            arguments = {"sandbox": box.id, "command": "echo hi"}
            self.assertIn("hi", self.client.call_tool("cofferdam", "shell_exec", arguments).text)
            self.assertTrue(self.client.call_tool("cofferdam", "shell_exec", {}).is_error)

    def test_what_makes_no_sense_is_refused_before_it_is_sent(self) -> None:
        with self.assertRaisesRegex(TypeError, "memory"):
            self.client.create(memory=1)  # type: ignore[call-arg]
        with self.assertRaisesRegex(ValueError, "no-network"):
            self.client.create(profile="none")  # type: ignore[arg-type]

    def test_a_field_that_there_is_not_is_refused_however_deep(self) -> None:
        entry = {"type": "file", "path": "a", "text": "x", "modes": "600"}
        manifest: Any = {"version": 1, "entries": [{"type": "directory", "path": "d"}, entry]}
        limits: Any = {"memory": 64 << 20, "pids": 5}
        terminal: Any = {"rows": 5, "columns": 40, "depth": 3}
        edit: Any = {"old": "a", "new": "b", "count": 2}
        with self.client.sandbox(labels={"any": "thing"}, env={"ANY": "thing"}) as box:
            box.files.write("f", "a")
            cases: list[tuple[str, Callable[[], object]]] = [
                ("limits.memory", lambda: self.client.create(limits=limits)),
                ("limits.memory", lambda: self.client.ensure("never-made", limits=limits)),
                ("sandbox.limits.memory", lambda: self.client.run("true", limits=limits)),
                ("manifest.entries.modes", lambda: self.client.create(manifest=manifest)),
                ("terminal.depth", lambda: box.exec("true", terminal=terminal)),
                ("start.entry", lambda: box.exec("true", start=cast(Any, {"entry": "x"}))),
                ("scope.hiden", lambda: box.files.glob("*", scope=cast(Any, {"hiden": True}))),
                ("scope.hiden", lambda: box.files.grep("a", scope=cast(Any, {"hiden": True}))),
                ("edits.count", lambda: box.files.edit("f", edit)),
            ]
            for named, asks in cases:
                with self.subTest(named), self.assertRaises(OptionNameError) as refused:
                    asks()
                self.assertIn(repr(named), str(refused.exception))
                self.assertIn("There are ", refused.exception.hint or "")
            # The control: what there is arrives.
            started = box.exec("true", terminal={"rows": 5, "columns": 40})
            self.assertEqual(started.wait(timeout_s=60).exit_code, 0)
            self.assertEqual(box.files.read("f"), b"a")

    def test_errors_say_what_the_server_said(self) -> None:
        with self.assertRaises(NotFoundError) as raised:
            self.client.get("nobody")
        error = raised.exception
        self.assertEqual((error.kind, error.status, error.retryable), ("not_found", 404, False))
        self.assertTrue(error.request_id)
        self.assertIn("nobody", str(error))
        with self.assertRaises(DeniedError):
            self.client.create(workspace="/")


class Connections(unittest.TestCase):
    def test_a_unix_socket(self) -> None:
        served = Served("unix:BASE/socket")
        self.addCleanup(served.close)
        with Client(f"unix:{served.base}/socket") as client, client.sandbox() as box:
            self.assertEqual(box.run("echo hi").text, "hi\n")

    def test_keys(self) -> None:
        served = Served()
        self.addCleanup(served.close)
        key = served.say("key", "create", "ci")
        with Client(served.url) as nobody, self.assertRaises(DeniedError) as raised:
            nobody.create()
        self.assertEqual(raised.exception.status, 401)
        with Client(served.url, key=key) as client, client.sandbox() as box:
            self.assertEqual(box.report.owner, "ci")
            self.assertTrue(any(entry.key for entry in client.audit()))

    def test_a_server_that_never_was_is_said_at_once(self) -> None:
        with Client("http://127.0.0.1:1") as client:
            self.assertFalse(client.ready())
            with self.assertRaises(UnavailableError) as raised:
                client.create()
        self.assertTrue(raised.exception.retryable)

    def test_a_proxy_of_the_environment_is_not_asked(self) -> None:
        served = Served()
        self.addCleanup(served.close)
        with mock.patch.dict(os.environ, {"HTTP_PROXY": "http://127.0.0.1:1"}):
            with Client(served.url) as client:
                self.assertTrue(client.ready())

    def test_output_goes_on_where_a_killed_server_broke_off(self) -> None:
        served = Served()
        self.addCleanup(served.close)
        with Client(served.url, reconnect_s=60) as client, client.sandbox() as box:
            line = "for i in $(seq 3); do echo $i; done; cat; echo end"
            started = box.exec(line, stdin=True)
            parts = started.output()
            got = next(parts).data
            served.kill()
            served.again()
            started.send("more\n")
            started.close_input()
            got += b"".join(part.data for part in parts)
            self.assertEqual(got, b"1\n2\n3\nmore\nend\n")
            self.assertEqual(started.exit_code, 0)
            events = client.events()
            first = next(events)
            served.kill()
            served.again()
            self.assertGreater(next(events).seq, first.seq)


if __name__ == "__main__":
    unittest.main()
