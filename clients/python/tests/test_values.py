"""What needs no server."""

from __future__ import annotations

import inspect
import unittest
from typing import Any, cast, get_type_hints

import httpx

from cofferdam import (
    Client,
    CofferdamError,
    NotFoundError,
    ServerError,
    UnavailableError,
    UsageError,
    models,
)
from cofferdam._api.api.files import files_watch
from cofferdam._api.api.sandboxes import sandboxes_ensure
from cofferdam._async.wire import authorization
from cofferdam._events import Event, EventReader
from cofferdam._values import (
    ExecOptions,
    Gathering,
    GlobOptions,
    GrepOptions,
    Limits,
    Output,
    RunOptions,
    SandboxOptions,
    Scope,
    SpecOptions,
    StartOptions,
    TerminalSize,
    WatchOptions,
    as_bytes,
    place,
    places,
    run_of,
)
from cofferdam.errors import error_of


class Keys(unittest.TestCase):
    def test_a_key_as_it_is_read_from_a_file_is_one(self) -> None:
        self.assertEqual(authorization(" cfd_1_a\n"), {"authorization": "Bearer cfd_1_a"})
        self.assertEqual(authorization(None), {})

    def test_what_is_no_key_is_refused_and_not_shown(self) -> None:
        for key in ("cfd_1 secret", "cfd_1_\x7fsecret", "cfd_1_s\u00e9cret", "a\nsecret"):
            with self.assertRaises(UsageError) as refused:
                authorization(key)
            self.assertNotIn("cret", str(refused.exception))


class Events(unittest.TestCase):
    def test_events_are_put_together_from_any_pieces(self) -> None:
        text = (
            ": here\n\nevent: output\nid: 3.0\ndata: a\ndata:b\u2028c\r\n\r\nid: 9\n\ndata: d\n\n"
        )
        expected = [Event("output", "3.0", "a\nb\u2028c"), Event("message", "", "d")]
        for size in range(1, len(text.encode())):
            reader, found = EventReader(), list[Event]()
            for begin in range(0, len(text.encode()), size):
                found += reader.feed(text.encode()[begin : begin + size])
            self.assertEqual(found, expected, size)


class Errors(unittest.TestCase):
    def test_a_kind_has_its_class(self) -> None:
        error = error_of({"kind": "not_found", "message": "no x", "hint": "Look."}, 404, "7")
        self.assertIsInstance(error, NotFoundError)
        self.assertEqual((str(error), error.request_id), ("no x (Look.)", "7"))
        self.assertIs(type(error_of({"kind": "new", "message": "x"}, 400, None)), CofferdamError)

    def test_an_answer_of_somebody_else_is_an_error_too(self) -> None:
        self.assertIsInstance(error_of(None, 502, None), UnavailableError)
        self.assertTrue(error_of(["x"], 503, None).retryable)
        self.assertIsInstance(error_of({"kind": 3}, 500, None), ServerError)


def answering(content: str, kind: str = "application/json") -> Client:
    """A client of a server that answers so to everything."""
    headers = {"content-type": kind}
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers=headers, content=content)
    )
    return Client("http://localhost", transport=transport)


class Answers(unittest.TestCase):
    def test_an_answer_that_is_not_as_it_should_be_is_an_error_of_this_client(self) -> None:
        for content, named in (
            ("{}", "it lacks 'backend'"),
            ('{"backend": "local"}', "it lacks 'created_ms'"),
            ("[]", "it lacks 'backend'"),
            ("null", "not iterable"),
            ("[1]", "sequence"),
            ("{", "Expecting"),
        ):
            with answering(content) as client, self.assertRaises(ServerError) as raised:
                client.get("a")
            self.assertEqual(raised.exception.kind, "protocol")
            self.assertIn(named, str(raised.exception))
        # What the client sends itself, and what comes in a stream.
        with answering("{}") as client, self.assertRaisesRegex(ServerError, "'changed_ms'"):
            client.put_secret("a", "b")
        stream = "event: event\ndata: {}\n\n"
        with (
            answering(stream, "text/event-stream") as client,
            self.assertRaisesRegex(ServerError, "it lacks '"),
        ):
            next(iter(client.events()))

    def test_what_cannot_be_asked_is_no_fault_of_the_server(self) -> None:
        # The control: it is told apart from what is wrong with an answer.
        with answering("{}") as client, self.assertRaises(AttributeError):
            client._wire.ask(
                sandboxes_ensure.sync_detailed, "a", client=client.api, body=cast(Any, 1)
            )


class Options(unittest.TestCase):
    def test_every_field_of_a_request_is_an_option(self) -> None:
        for options, wish, otherwise in (
            (SpecOptions, models.SpecWish, set[str]()),
            (SandboxOptions, models.SandboxWish, {"name"}),
            (ExecOptions, models.ExecWish, {"argv", "shell"}),
            (StartOptions, models.StartWish, set[str]()),
            (TerminalSize, models.SizeWish, set[str]()),
            (Limits, models.LimitsWish, set[str]()),
            (Scope, models.ScopeWish, set[str]()),
            (GlobOptions, models.GlobWish, {"patterns", "path", "path_base64"}),
            (GrepOptions, models.GrepWish, {"patterns", "paths", "paths_base64"}),
        ):
            fields = set(inspect.signature(wish).parameters)
            self.assertEqual(set(get_type_hints(options)), fields - otherwise, wish)
        run = set(inspect.signature(models.RunWish).parameters) - {"sandbox", "exec_"}
        # A run is in the foreground and reads nothing; its sandbox has the variables.
        never = {"detached", "keep_awake", "receipt", "stdin"}
        every = set(get_type_hints(ExecOptions)) - never | set(get_type_hints(SpecOptions)) | run
        self.assertEqual(set(get_type_hints(RunOptions)), every)
        watch = set(inspect.signature(files_watch._get_kwargs).parameters)
        known = {"sandbox", "path", "path_base64"}
        self.assertEqual(set(get_type_hints(WatchOptions)), watch - known)

    def test_each_option_of_a_run_is_where_it_belongs(self) -> None:
        wish = run_of("true", {"cwd": "/", "image": "a", "on_failure": "stop", "id": "x"})
        command = {"shell": "true", "cwd": "/", "id": "x"}
        self.assertEqual(wish, {"exec": command, "sandbox": {"image": "a"}, "on_failure": "stop"})
        with self.assertRaisesRegex(ValueError, "on_failure"):
            run_of("true", {"on_failure": "never"})
        with self.assertRaisesRegex(TypeError, "stdin"):
            run_of("true", {"stdin": True})


class Values(unittest.TestCase):
    def test_paths(self) -> None:
        self.assertEqual(place(b"a"), {"path": "a"})
        self.assertEqual(place(b"\xff", "to"), {"to_base64": "/w=="})
        self.assertEqual(places(["a", b"\xff"]), {"paths": ["a"], "paths_base64": ["/w=="]})

    def test_bytes(self) -> None:
        self.assertEqual([as_bytes("é", None), as_bytes(None, "/w==")], [b"\xc3\xa9", b"\xff"])

    def test_only_so_much_is_gathered(self) -> None:
        gathering = Gathering(3)
        for data in (b"ab", b"cd", b"ef"):
            gathering.take(Output("stdout", 0, data))
        self.assertEqual(bytes(gathering._kept["stdout"]), b"abc")


if __name__ == "__main__":
    unittest.main()
