"""Several commands at once, each line as it comes, by asyncio.

    python follow.py http://127.0.0.1:7070

Prints:

    first: 1
    first: 2
    second: 1
    second: 2
"""

import asyncio
import sys

from cofferdam import AsyncClient, AsyncSandbox


async def lines(box: AsyncSandbox, name: str) -> list[str]:
    started = await box.exec("for i in 1 2; do echo $i; sleep 0.1; done")
    return [f"{name}: {line}" async for line in started.lines()]


async def main(url: str) -> None:
    async with AsyncClient(url) as client, client.sandbox() as box:
        for one in await asyncio.gather(lines(box, "first"), lines(box, "second")):
            print("\n".join(one))


asyncio.run(main(sys.argv[1]))
