# Looks from inside for a gate that would reach NAME: by every address and port that one could have, by
# every socket that has a name, and in every process that is seen.
import json, os, socket, sys

NAME = sys.argv[1]
REQUEST = f"GET http://{NAME}/ HTTP/1.1\r\nHost: {NAME}\r\n\r\n".encode()
ADDRESSES = ["127.0.0.1", "127.0.0.2", "::1", "198.18.0.1", "198.18.1.0", "25.0.0.2", "2fff::2", "10.0.0.1", "0.0.0.0"]


def said(make):
    try:
        with make() as stream:
            stream.settimeout(20)
            stream.sendall(REQUEST)
            heard = b""
            while piece := stream.recv(4096):
                heard += piece
            return heard.decode("latin-1")
    except OSError as error:
        return str(error)


def named(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(5)
    stream.connect("\0" + path[1:] if path.startswith("@") else path)
    return stream


heard = {}
for address in ADDRESSES:
    for port in (61001, 61002, 61053, 80):
        heard[f"{address} {port}"] = said(lambda: socket.create_connection((address, port), 5))
paths = {words[7] for line in open("/proc/net/unix") if len(words := line.split()) > 7}
for path in paths:
    heard[path] = said(lambda: named(path))
processes = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        processes.append(open(f"/proc/{pid}/cmdline").read().replace("\0", " "))
    except OSError:
        pass
print(json.dumps({"heard": heard, "gates": [line for line in processes if line.rstrip().endswith(" gate")]}))
