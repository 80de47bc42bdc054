# A proxy that does what it is asked: without a gate, attacks on one have this to try on.
import socket, struct, threading

PORT = 61002


def pump(one, other):
    try:
        while piece := one.recv(65536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def one(stream):
    first = stream.recv(1)
    if first == b"\5":
        stream.recv(stream.recv(1)[0])
        stream.sendall(b"\5\0")
        name = stream.recv(stream.recv(5)[4])
        port, = struct.unpack("!H", stream.recv(2))
        target, rest = (name.decode(), port), b""
        stream.sendall(b"\5\0\0\1" + bytes(6))
    else:
        head = first
        while b"\r\n\r\n" not in head:
            head += stream.recv(65536)
        method, where = head.split()[:2]
        if method == b"CONNECT":
            rest = head.partition(b"\r\n\r\n")[2]
            target = where.decode()
            stream.sendall(b"HTTP/1.1 200 yes\r\n\r\n")
        else:
            target, rest = where.decode().split("/")[2], head
        name, _, port = target.partition(":")
        target = (name, int(port or 80))
    server = socket.create_connection(target, 20)
    server.sendall(rest)
    threading.Thread(target=pump, args=(stream, server), daemon=True).start()
    pump(server, stream)


def serve():
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", PORT))
    listener.listen(64)

    def quietly(stream):
        with stream:
            try:
                one(stream)
            except (OSError, ValueError, IndexError, struct.error):
                pass

    def accept():
        while True:
            threading.Thread(target=quietly, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
