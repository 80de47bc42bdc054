# Sixty-five attacks on the proxy of a gate and three controls, by the grammar of what it may take. From
# where this runs it is at PROXY; what is said of each is what was heard.
import concurrent.futures, json, socket, struct, sys

PROXY = ("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 61002)
HEAD = "GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n"


def connect(target, more=""):
    return f"CONNECT {target} HTTP/1.1\r\n{more}\r\n"


def request(address, host, more=""):
    return f"GET {address} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


def socks(name, port=80, command=1, kind=3):
    name = name if isinstance(name, bytes) else name.encode()
    if kind == 3:
        name = bytes([len(name)]) + name
    return b"\5\1\0\5" + bytes([command, 0, kind]) + name + struct.pack("!H", port)


def v4(address):
    return socks(socket.inet_pton(socket.AF_INET, address), kind=1)


def v6(address):
    return socks(socket.inet_pton(socket.AF_INET6, address), kind=4)


INNER = request("/", "evil.test")

HTTP = {
    "another host": request("http://evil.test/", "evil.test"),
    "a Host that is not the target": request("http://ok.test/", "evil.test"),
    "a target that is not the Host": request("http://evil.test/", "ok.test"),
    "two Hosts": HEAD + "Host: evil.test\r\n\r\n",
    "no Host": "GET http://ok.test/ HTTP/1.1\r\n\r\n",
    "a Host before the target's in one line": request("http://ok.test/", "evil.test, ok.test"),
    "a user that looks like the host": request("http://ok.test@evil.test/", "ok.test"),
    "a user with a password": request("http://ok.test:80@evil.test/", "ok.test"),
    "a backslash": request("http://ok.test\\@evil.test/", "ok.test"),
    "a fragment": request("http://evil.test#.ok.test/", "ok.test"),
    "a query in the host": request("http://evil.test?.ok.test/", "ok.test"),
    "a folded header": HEAD + "X: a\r\n Host: evil.test\r\n\r\n",
    "a bare LF": HEAD + "X: a\nHost: evil.test\r\n\r\n",
    "a bare CR": HEAD + "X: a\rHost: evil.test\r\n\r\n",
    "a NUL in a header": HEAD + "X: \0\r\n\r\n",
    "two lengths": HEAD + "Content-Length: 1\r\nContent-Length: 99\r\n\r\nx" + INNER,
    "a length and chunks": HEAD + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + INNER,
    "chunks that are no chunks": HEAD + "Transfer-Encoding: xchunked\r\n\r\n" + INNER,
    "chunks with a tab": HEAD + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n" + INNER,
    "a space before a colon": HEAD + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + INNER,
    "an upgrade": HEAD + "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "a private address": request("http://10.0.0.1/", "10.0.0.1"),
    "metadata": request("http://169.254.169.254/latest/meta-data/secret", "169.254.169.254"),
    "an address in decimal": request("http://167772161/", "167772161"),
    "another scheme": request("ftp://ok.test/", "ok.test"),
}

CONNECT = {
    "tunnel: another host": connect("evil.test:443"),
    "tunnel: another port": connect("ok.test:22"),
    "tunnel: no port": connect("ok.test"),
    "tunnel: port 0": connect("ok.test:0"),
    "tunnel: a port that overflows": connect("ok.test:65616"),
    "tunnel: a port with a sign": connect("ok.test:+80"),
    "tunnel: a port in hexadecimal": connect("ok.test:0x50"),
    "tunnel: two ports": connect("ok.test:80:443"),
    "tunnel: a user": connect("ok.test@evil.test:80"),
    "tunnel: percent": connect("evil.test%00.ok.test:80"),
    "tunnel: a NUL": connect("evil.test\0.ok.test:80"),
    "tunnel: a suffix": connect("evilok.test:80"),
    "tunnel: a prefix": connect("ok.test.evil.test:80"),
    "tunnel: letters that look alike": "CONNECT \u043ek.test:80 HTTP/1.1\r\n\r\n",
    "tunnel: a private address": connect("10.0.0.1:80"),
    "tunnel: loopback": connect("127.0.0.1:8077"),
    "tunnel: any address": connect("0.0.0.0:8077"),
    "tunnel: IPv4 as IPv6": connect("[::ffff:10.0.0.1]:80"),
    "tunnel: NAT64": connect("[64:ff9b::a00:1]:80"),
    "tunnel: an octal address": connect("012.0.0.1:80"),
    "tunnel: a short address": connect("10.1:80"),
    "tunnel: a name that leads inside": connect("a0.leads.test:80"),
    "tunnel: with a body": connect("ok.test:80", f"Content-Length: {len(INNER)}\r\n") + INNER,
    "tunnel: with more behind it": connect("ok.test:80") + INNER,
    "tunnel: a Host elsewhere": connect("ok.test:80", "Host: evil.test:80\r\n"),
}

SOCKS = {
    "SOCKS: another host": socks("evil.test"),
    "SOCKS: another port": socks("ok.test", 22),
    "SOCKS: a NUL": socks("evil.test\0.ok.test"),
    "SOCKS: a NUL at the end": socks("ok.test\0"),
    "SOCKS: a name that is an address": socks("10.0.0.1"),
    "SOCKS: a newline": socks("ok.test\r\n"),
    "SOCKS: bytes that are no text": socks(b"ok.test\xff"),
    "SOCKS: no name": socks(""),
    "SOCKS: a private address": v4("10.0.0.1"),
    "SOCKS: loopback": v4("127.0.0.1"),
    "SOCKS: IPv4 as IPv6": v6("::ffff:10.0.0.1"),
    "SOCKS: 6to4": v6("2002:a00:1::1"),
    "SOCKS: a port to bind": socks("ok.test", command=2),
    "SOCKS: datagrams": socks("ok.test", command=3),
    "SOCKS: version 4": b"\4\1\0\x50\x0a\0\0\1\0",
}

CONTROLS = {
    "HTTP": HEAD + "\r\n",
    "CONNECT": connect("ok.test:80") + "|" + request("/", "ok.test", "Connection: close\r\n"),
    "SOCKS": socks("ok.test") + b"|" + request("/", "ok.test", "Connection: close\r\n").encode(),
}


def heard(words):
    """All that is said to these; what is behind a bar is said once something was answered."""
    words = words if isinstance(words, bytes) else words.encode()
    now, _, then = words.partition(b"|")
    said = b""
    with socket.create_connection(PROXY, 20) as stream:
        stream.settimeout(20)
        try:
            stream.sendall(now)
            if then:
                # The answer to a greeting, and to what was asked for.
                while not (b"\r\n\r\n" in said or said.startswith(b"\5") and len(said) >= 12):
                    said += stream.recv(4096)
                stream.sendall(then)
            while piece := stream.recv(4096):
                said += piece
                if piece.startswith(b"\5\0") and b"\r\n" not in said and len(said) >= 12 and not then:
                    break
        except OSError as error:
            return said.decode("latin-1") + f" ({error})"
    return said.decode("latin-1")


ATTACKS = {**HTTP, **CONNECT, **SOCKS}
if __name__ == "__main__":
    everything = {**ATTACKS, **{f"control: {name}": words for name, words in CONTROLS.items()}}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        print(json.dumps(dict(zip(everything, pool.map(heard, everything.values())))))
