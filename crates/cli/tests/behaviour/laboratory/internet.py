# What is beyond the host: every address answers here, in a network namespace of its own, and what
# came is written down. `witness` has one object a line: packets, questions for names, requests.
import ctypes, json, os, socket, ssl, struct, subprocess, sys, threading
from names import Zone
from shops import Shops

BASE = sys.argv[1]
LOCK = threading.Lock()
WITNESS = open(os.path.join(BASE, "witness"), "a", buffering=1)


def witness(what):
    with LOCK:
        WITNESS.write(json.dumps(what) + "\n")


def threaded(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()


def ip(*words):
    subprocess.run(["ip", *words], check=True, stdin=subprocess.DEVNULL)


def network():
    ip("link", "set", "lo", "up")
    ip("link", "set", "down0", "up")
    ip("addr", "add", "25.0.0.1/24", "dev", "down0")
    ip("-6", "addr", "add", "2fff::1/64", "dev", "down0", "nodad")
    # Whatever the address, it is here; but for the host's, which IPv6 looks for only afterwards.
    ip("route", "add", "local", "default", "dev", "lo")
    ip("-6", "route", "add", "local", "default", "dev", "lo", "table", "100")
    ip("-6", "rule", "add", "pref", "40000", "lookup", "100")


def packets():
    """Writes down each packet that opens something: whatever else is said, this one was sent."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
    sock.bind(("down0", 0))
    threaded(sniff, sock)


def sniff(sock):
    while True:
        packet, where = sock.recvfrom(128)
        if where[2] == socket.PACKET_OUTGOING:
            continue
        if where[1] == 0x0800:
            kind, head, to = packet[9], (packet[0] & 15) * 4, socket.inet_ntoa(packet[16:20])
        elif where[1] == 0x86DD:
            kind, head, to = packet[6], 40, socket.inet_ntop(socket.AF_INET6, packet[24:40])
        else:
            continue
        body = packet[head:]
        if kind == 6 and body[13] & 0x12 == 0x02 or kind == 17:
            port, = struct.unpack("!H", body[2:4])
            witness({"packet": "tcp" if kind == 6 else "udp", "to": to, "port": port})
        # Of ICMP of IPv6 only what asks for an echo: neighbours have to find each other.
        elif kind == 1 or kind == 58 and body[0] == 128:
            witness({"packet": "icmp", "to": to, "port": 0})
        elif kind not in (0, 6, 58):
            witness({"packet": str(kind), "to": to, "port": 0})


def listening(port):
    sock = socket.socket(socket.AF_INET6)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind(("::", port))
    sock.listen(128)
    return sock


def plain(address):
    return address[7:] if address.startswith("::ffff:") else address


def accepting(port, serve):
    listener = listening(port)

    def one(stream):
        try:
            serve(stream, plain(stream.getsockname()[0]))
        except (OSError, ValueError, IndexError, struct.error):
            pass

    def accept():
        while True:
            threaded(one, listener.accept()[0])

    threaded(accept)


def echo(port):
    """Sends datagrams back from where they were sent to."""
    family_info = (
        (socket.AF_INET, socket.IPPROTO_IP, 8, 8),
        (socket.AF_INET6, socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, socket.IPV6_PKTINFO),
    )
    for family, level, option, kind in family_info:
        sock = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            sock.setsockopt(level, socket.IPV6_V6ONLY, 1)
            # An address that no interface has: IPV6_FREEBIND.
            sock.setsockopt(level, 78, 1)
        sock.setsockopt(level, option, 1)
        sock.bind(("", port))
        threaded(echoing, sock, level, kind)


def echoing(sock, level, kind):
    while True:
        said, beside, _, source = sock.recvmsg(2048, 256)
        info = next(data for at, of, data in beside if (at, of) == (level, kind))
        # From the address that was asked, by whatever interface.
        if level == socket.IPPROTO_IP:
            info = bytes(4) + info[8:12] + bytes(4)
        else:
            info = info[:16] + bytes(4)
        sock.sendmsg([b"REACHED " + said], [(level, kind, info)], 0, source)


class Tls:
    """TLS for every name; which one was asked for is remembered with the stream."""

    def __init__(self):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(os.path.join(BASE, "leaf.pem"), os.path.join(BASE, "leaf.key"))
        self.context.sni_callback = self.named

    @staticmethod
    def named(stream, name, _):
        stream.asked_for = name

    def wrap(self, stream):
        stream = self.context.wrap_socket(stream, server_side=True)
        return stream, getattr(stream, "asked_for", None)


def database(tls):
    """As much of PostgreSQL as one question and its answer need, in the clear or in TLS."""

    def message(kind, body):
        return kind + struct.pack("!I", len(body) + 4) + body

    def exactly(stream, length):
        said = b""
        while len(said) < length:
            piece = stream.recv(length - len(said))
            if not piece:
                raise ValueError("it ended")
            said += piece
        return said

    def serve(stream, to):
        name = None
        while True:
            length, code = struct.unpack("!II", exactly(stream, 8))
            rest = exactly(stream, length - 8)
            if code == 80877103:
                stream.sendall(b"S")
                stream, name = tls.wrap(stream)
            elif code == 80877104:
                stream.sendall(b"N")
            else:
                break
        witness({"database": name, "to": to, "who": rest.decode("latin-1")})
        ready = message(b"Z", b"I")
        stream.sendall(message(b"R", struct.pack("!I", 0)) + message(b"S", b"server_version\x0015\0")
                       + message(b"S", b"client_encoding\0UTF8\0") + ready)
        while True:
            kind = exactly(stream, 1)
            length, = struct.unpack("!I", exactly(stream, 4))
            exactly(stream, length - 4)
            if kind != b"Q":
                return
            row = message(b"T", struct.pack("!H", 1) + b"said\0" + struct.pack("!IHIhiH", 0, 0, 25, -1, -1, 0))
            row += message(b"D", struct.pack("!HI", 1, 7) + b"REACHED")
            stream.sendall(row + message(b"C", b"SELECT 1\0") + ready)

    return serve


def shell():
    """A server of ssh for the user that this is; its list of users names that one alone."""
    program = "/usr/sbin/dropbear"
    if not os.path.exists(program):
        return
    home = os.path.join(BASE, "remote")
    users = os.path.join(BASE, "passwd")
    with open(users, "w") as file:
        file.write(f"git:x:{os.getuid()}:{os.getgid()}::{home}:/bin/sh\n")
    if ctypes.CDLL(None, use_errno=True).mount(users.encode(), b"/etc/passwd", None, 4096, None):
        raise OSError(ctypes.get_errno(), "mount the list of users")
    words = [program, "-F", "-E", "-s", "-j", "-k", "-p", "0.0.0.0:22", "-P", os.path.join(BASE, "pid"),
             "-r", os.path.join(BASE, "host_key")]
    log = open(os.path.join(BASE, "ssh.log"), "w")
    # It ends with this process, however that ends.
    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                     preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 9))


def main():
    ctypes.CDLL(None).prctl(1, 9)
    print("there", flush=True)
    sys.stdin.readline()
    network()
    packets()
    tls, zone, shops = Tls(), Zone(witness), Shops(BASE, witness)
    zone.serve()
    accepting(53, zone.over_tcp)
    for port in (80, 8080):
        accepting(port, lambda stream, to, port=port: shops.serve(stream, to, port, None))
    for port in (443, 853):
        accepting(port, lambda stream, to, port=port: shops.serve(*tls_first(tls, stream, to, port)))
    accepting(5432, database(tls))
    accepting(25, lambda stream, to: (witness({"greeted": to}), stream.sendall(b"220 REACHED\r\n"),
                                      stream.recv(100)))
    echo(443)
    echo(123)
    shell()
    print("ready", flush=True)
    sys.stdin.read()


def tls_first(tls, stream, to, port):
    stream, name = tls.wrap(stream)
    return stream, to, port, name


main()
