"""The client for asyncio against a real server. It is what the blocking one is made from."""

from __future__ import annotations

import asyncio
import unittest
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
from served import Served

from cofferdam import AsyncClient, ConflictError, NotFoundError, OptionNameError


class _Late(httpx.AsyncBaseTransport):
    """Brings answers about new sandboxes late: the server has made them meanwhile."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport()
        self.has_answered = asyncio.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        if request.method in ("POST", "PUT"):
            self.has_answered.set()
            await asyncio.sleep(0.1)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.served = Served()
        self.addCleanup(self.served.close)
        self.client = AsyncClient(self.served.url, reconnect_s=60)
        self.addAsyncCleanup(self.client.close)

    async def test_many_at_once(self) -> None:
        async with self.client.sandbox() as box:
            numbers = range(20)
            ran = await asyncio.gather(*(box.run(f"echo {number}") for number in numbers))
            self.assertEqual([one.check().text for one in ran], [f"{n}\n" for n in numbers])
        with self.assertRaises(NotFoundError):
            await box.refresh()

    async def test_a_terminal(self) -> None:
        async with self.client.sandbox() as box:
            async with await box.terminal(
                "stty size; read x; exit $x", rows=9, columns=33
            ) as terminal:
                seen = b""
                async for piece in terminal:
                    seen += piece
                    if seen.endswith(b"9 33\r\n"):
                        await terminal.send("3\n")
            self.assertEqual(terminal.exec.exit_code, 3)

    async def test_a_terminal_is_entered_as_the_blocking_one(self) -> None:
        async with self.client.sandbox() as box:
            async with box.terminal("echo here; exit 4") as terminal:
                seen = b"".join([piece async for piece in terminal])
            self.assertEqual((seen, terminal.exec.exit_code), (b"here\r\n", 4))
            awaited = await box.terminal("exit 5")
            self.assertEqual([piece async for piece in awaited], [])
            self.assertEqual(awaited.exec.exit_code, 5)

    async def test_many_streams_leave_room_for_a_question(self) -> None:
        async with self.client.sandbox() as box:
            started = await box.exec("echo here; sleep 100")
            # More than the connections that httpx has by default.
            streams = [started.output() for _ in range(110)]
            await asyncio.gather(*(anext(stream) for stream in streams))
            self.assertEqual((await box.run("echo hi")).text, "hi\n")
            await started.kill()

    async def test_a_file_in_pieces(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(64):
                yield b"x" * 16384

        async with self.client.sandbox() as box:
            await box.files.write("big", pieces())
            read = [piece async for piece in box.files.download("big")]
            self.assertEqual(b"".join(read), b"x" * (1 << 20))
            self.assertEqual([one.path async for one in box.files.list()], ["big"])
            for nothing in cast(tuple[Any, ...], (None, [b"not a stream"], {})):
                with self.assertRaises(OptionNameError):
                    await box.files.write("big", nothing)
            self.assertEqual((await box.files.stat("big")).size, 1 << 20)
            await box.files.write("small", "text")
            self.assertEqual(await box.files.read("small"), b"text")
            archive = [piece async for piece in box.files.export("small")]
            done = await box.files.import_("copy", b"".join(archive))
            self.assertEqual(done.files, 1)

    async def test_output_goes_on_where_a_killed_server_broke_off(self) -> None:
        async with self.client.sandbox() as box:
            started = await box.exec("echo one; cat; echo end", stdin=True)
            parts = started.output()
            got = (await anext(parts)).data
            self.served.kill()
            self.served.again()
            await started.send("more\n", close=True)
            async for part in parts:
                got += part.data
            self.assertEqual((got, started.exit_code), (b"one\nmore\nend\n", 0))
            # A command whose answer was lost is not started twice: its key is sent again.
            self.served.kill()
            late = asyncio.create_task(box.run("echo x >> ran; cat ran"))
            await asyncio.to_thread(self.served.again)
            self.assertEqual((await late).text, "x\n")

    async def test_a_command_is_killed_where_its_run_is_given_up(self) -> None:
        async with self.client.sandbox() as box:
            # While it starts, and while it runs; another one goes on.
            stays = await box.exec(["sleep", "100"])
            for begins in (False, True):
                runs = asyncio.create_task(box.run(["sleep", "101"]))
                while begins and len(await box.execs()) < 3:
                    await asyncio.sleep(0.01)
                await asyncio.sleep(0)
                runs.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await runs
            given_up = [one for one in await box.execs() if one.id != stays.id]
            self.assertIn(len(given_up), (1, 2))
            for one in given_up:
                self.assertEqual((await one.wait(timeout_s=30)).exit_code, 137)
            with self.assertRaises(TimeoutError):
                await asyncio.wait_for(box.run("sleep 102; echo late"), 0.5)
            late = (await box.execs())[-1]
            self.assertEqual((await late.wait(timeout_s=30)).exit_code, 137)
            self.assertFalse((await stays.refresh()).exit_code)
            # One that fails by itself is told, and nothing is killed.
            self.assertEqual((await box.run("exit 3")).exit_code, 3)

    async def test_what_a_shell_does_is_interrupted_where_it_is_given_up(self) -> None:
        async with self.client.sandbox() as box:
            shell = await box.shell()
            await shell.run("x=1")
            sleeps = asyncio.create_task(shell.run("touch begun; sleep 103"))
            while "begun" not in [one.path async for one in box.files.list()]:
                await asyncio.sleep(0.01)
            sleeps.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await sleeps
            async with asyncio.timeout(30):
                while True:
                    try:
                        output, _ = await shell.run("echo $x")
                        break
                    except ConflictError:
                        # It is being interrupted still.
                        await asyncio.sleep(0.01)
            self.assertEqual(output, b"1\n")

    async def test_a_sandbox_that_is_given_up_while_it_is_made_is_gone(self) -> None:
        late = _Late()
        async with AsyncClient(self.served.url, transport=late) as client:
            was_there = await self.client.ensure("was-there")
            blocks = [client.sandbox(), client.sandbox(keep=True), client.sandbox("fresh")]
            for block in [*blocks, client.sandbox("was-there")]:
                late.has_answered.clear()
                makes = asyncio.create_task(block.__aenter__())
                await late.has_answered.wait()
                makes.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await makes
                left = [box.id async for box in self.client.sandboxes()]
                self.assertEqual(left, [was_there.id])
            # What is to be kept, and has a name, is.
            late.has_answered.clear()
            makes = asyncio.create_task(client.sandbox("kept", keep=True).__aenter__())
            await late.has_answered.wait()
            makes.cancel()
            await asyncio.wait({makes})
            await (await self.client.get("kept")).delete()

    async def test_a_run_of_its_own_ends_where_it_is_given_up(self) -> None:
        runs = asyncio.create_task(self.client.run(["sleep", "104"]))
        while not [box async for box in self.client.sandboxes()]:
            await asyncio.sleep(0.01)
        runs.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await runs
        async with asyncio.timeout(30):
            while [box async for box in self.client.sandboxes()]:
                await asyncio.sleep(0.01)

    async def test_events_and_waiting_stop_when_their_task_does(self) -> None:
        async with self.client.sandbox() as box:
            sleeps = await box.exec(["sleep", "100"])
            waits = asyncio.create_task(sleeps.wait())
            events = self.client.events(sandbox=box.id)
            self.assertGreater((await anext(events)).seq, 0)
            waits.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waits
            await sleeps.kill()
            self.assertEqual((await sleeps.wait()).exit_code, 137)


if __name__ == "__main__":
    unittest.main()
