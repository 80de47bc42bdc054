"""An agent's work on a real directory, looked at before it lands. The server must allow the directory
(`cofferdam serve --allow-workspace /srv/project`).

    python review.py http://127.0.0.1:7070 /srv/project

Prints:

    before: nothing
    made.txt: added
    after: made
"""

import sys
from pathlib import Path

from cofferdam import Client

url, directory = sys.argv[1:]
made = Path(directory, "made.txt")
with Client(url) as client:
    with client.sandbox(workspace=directory, copy_on_write=True) as box:
        box.run("echo made > made.txt").check()
        print("before:", made.read_text().strip() if made.exists() else "nothing")
        for change in box.diff():
            print(f"{change.path}: {change.kind}")
        box.apply(["made.txt"])
    print("after:", made.read_text().strip())
