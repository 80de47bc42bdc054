# The authority for all names of the laboratory: an answer is written down, and so is who was asked.
import socket, struct, threading, time

A, CNAME, TXT, AAAA = 1, 5, 16, 28

SERVER, OTHER, RESOLVER, SECOND = "25.1.0.1", "25.1.0.2", "25.2.0.53", "25.2.0.99"
SERVER6, SECOND6 = "2fff:1::1", "2fff:2::99"

# Where names lead that belong to the place of an attack: nowhere that is public.
LEADS = [
    "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "168.63.129.16",
    "0.0.0.0", "127.0.0.1", "127.9.9.9", "192.0.2.1", "198.18.7.7", "240.0.0.1", "25.0.0.2",
    "::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe",
    "2002:a00:1::1", "fd00:ec2::254", "2fff::2", "2001:db8::1",
]

NAMES = {
    "both.test": [SERVER, SERVER6], "six.test": [SERVER6], "front.test": [SERVER],
    "evil.test": [OTHER], "slow.test": [SERVER], "long.test": [SERVER],
    "mixed.test": ["10.0.0.1", SERVER],
}
ALIASES = {"alias.test": "ok.test", "hidden.test": "a0.leads.test", "ring.test": "ring.test"}


def packed(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return AAAA if ":" in address else A, socket.inet_pton(family, address)


class Zone:
    def __init__(self, witness):
        self.witness, self.times = witness, {}

    def addresses(self, name, kind):
        if name in NAMES:
            return NAMES[name]
        if name.endswith(".leads.test"):
            return [LEADS[int(name.split(".")[0][1:])]]
        if name.endswith(".rebind.test"):
            if kind == A:
                self.times[name] = self.times.get(name, 0) + 1
            return [SERVER if self.times.get(name, 0) < 2 else "10.9.9.9"]
        return [SERVER] if name.endswith(".test") and name != "nobody.test" else None

    def answer(self, question, to, over):
        name, end = "", 12
        labels = []
        while length := question[end]:
            labels.append(question[end + 1:end + 1 + length].decode("latin-1"))
            end += 1 + length
        name = ".".join(labels).lower()
        kind, = struct.unpack("!H", question[end + 1:end + 3])
        self.witness({"asked": name, "kind": kind, "to": to, "over": over})
        if name == "silent.test":
            return None
        if name == "slow.test":
            time.sleep(1)
        records = []
        owner = question[12:end + 1]
        if alias := ALIASES.get(name):
            target = b"".join(bytes([len(part)]) + part.encode() for part in alias.split(".")) + b"\0"
            records.append(owner + struct.pack("!HHIH", CNAME, 1, 0, len(target)) + target)
            owner, name = target, alias
        found = [] if alias == name == "ring.test" else self.addresses(name, kind)
        for address in found or []:
            own, data = packed(address)
            if own == kind:
                records.append(owner + struct.pack("!HHIH", own, 1, 0, len(data)) + data)
        if kind == TXT:
            records = [owner + struct.pack("!HHIH", TXT, 1, 0, 8) + b"\x07REACHED"]
        flags = 0x8580 | (3 if found is None else 0)
        if over == "udp" and name == "long.test":
            flags, records = flags | 0x0200, []
        head = question[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
        return head + question[12:end + 5] + b"".join(records)

    def over_udp(self, address):
        is_v6 = ":" in address
        sock = socket.socket(socket.AF_INET6 if is_v6 else socket.AF_INET, socket.SOCK_DGRAM)
        if is_v6:
            # An address that no interface has: IPV6_FREEBIND.
            sock.setsockopt(socket.IPPROTO_IPV6, 78, 1)
        sock.bind((address, 53))

        def one(question, source):
            if answer := self.answer(question, address, "udp"):
                sock.sendto(answer, source)

        while True:
            question, source = sock.recvfrom(2048)
            threading.Thread(target=one, args=(question, source), daemon=True).start()

    def over_tcp(self, stream, to):
        with stream:
            length, = struct.unpack("!H", stream.recv(2, socket.MSG_WAITALL))
            answer = self.answer(stream.recv(length, socket.MSG_WAITALL), to, "tcp")
            if answer:
                stream.sendall(struct.pack("!H", len(answer)) + answer)

    def serve(self):
        for address in (RESOLVER, SECOND, SECOND6):
            threading.Thread(target=self.over_udp, args=(address,), daemon=True).start()
