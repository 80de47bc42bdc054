"""A command in a sandbox, and what it wrote.

    python quickstart.py http://127.0.0.1:7070

Prints:

    hello from inside
    no such file: exit code 1
"""

import sys

from cofferdam import Client

with Client(sys.argv[1]) as client, client.sandbox() as box:
    box.files.write("hello.sh", "echo hello from inside\n")
    print(box.run(["sh", "hello.sh"]).check().text, end="")
    ran = box.run("cat ~/.ssh/id_ed25519")
    if b"No such file" in ran.stderr:
        print(f"no such file: exit code {ran.exit_code}")
