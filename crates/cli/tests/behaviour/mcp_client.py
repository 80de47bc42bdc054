"""Drives a whole session with the official client: python mcp_client.py MODE COFFERDAM."""

import asyncio
import os
import sys

from mcp import Client, MCPError, StdioServerParameters


async def main(mode: str, program: str) -> None:
    server = StdioServerParameters(command=program, args=["mcp", "--cow"], env=dict(os.environ))
    async with Client(server, mode=mode) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"shell_exec", "file_read", "sandbox_diff", "sandbox_apply"} <= names, names

        async def call(tool: str, **arguments: object) -> dict:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, (tool, result)
            return result.structured_content

        await call("sandbox_ensure")
        heard = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)

        ran = await client.call_tool(
            "shell_exec",
            {"command": "cat kept.txt; sleep 1.5"},
            progress_callback=hear,
        )
        assert ran.structured_content["stdout"]["text"] == "old\n", ran
        assert heard, "no progress"
        await call("file_write", path="made.txt", content="one\n")
        await call("file_write", path="kept.txt", content="new\n")
        assert (await call("file_read", path="made.txt"))["content"] == "1|one"
        assert (await call("sandbox_diff"))["total"] == 2
        await call("shell_exec", command="rm made.txt")
        await call("sandbox_undo")
        read = await client.read_resource("cofferdam://own/files/made.txt")
        assert read.contents[0].text == "one\n", read
        refused = await client.call_tool("file_read", {"path": "../../etc/passwd"})
        assert refused.is_error, refused
        try:
            await client.read_resource("cofferdam://own/files/nothing")
            raise AssertionError("there is no such file")
        except MCPError as error:
            assert "nothing" in str(error), error
        await call("sandbox_apply")
        with open("kept.txt", encoding="utf-8") as file:
            assert file.read() == "new\n"
        await call("sandbox_delete")
    print("done")


asyncio.run(main(sys.argv[1], sys.argv[2]))
