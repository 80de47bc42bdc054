def connect(family, kind, protocol, address):
    s = socket.socket(family, kind, protocol)
    s.settimeout(0.5)
    s.connect(address)
    return f"connected to {address}"

# attack network.host_loopback bare=works
def network_host_loopback():
    return connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("127.0.0.1", W["port"]))

# attack network.host_any_address bare=works
def network_host_any_address():
    return connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("0.0.0.0", W["port"]))

# attack network.host_loopback_v6 bare=works
def network_host_loopback_v6():
    return connect(socket.AF_INET6, socket.SOCK_STREAM, 0, ("::1", W["port6"]))

# attack network.host_loopback_mapped bare=works
def network_host_loopback_mapped():
    return connect(socket.AF_INET6, socket.SOCK_STREAM, 0, ("::ffff:127.0.0.1", W["port"]))

# attack network.host_multipath bare=works
def network_host_multipath():
    return connect(socket.AF_INET, socket.SOCK_STREAM, 262, ("127.0.0.1", W["port"]))

# attack network.host_fast_open bare=works
def network_host_fast_open():
    s = socket.socket()
    return s.sendto(b"x", 0x20000000, ("127.0.0.1", W["port"]))

# attack network.host_udp bare=works
def network_host_udp():
    # Sending says nothing; the host sees whether it came.
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.sendto(b"attack", ("127.0.0.1", W["udp"]))
    raise Stopped("sent; the host knows whether it came")

# attack network.host_path_socket bare=works
def network_host_path_socket():
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, W["socket"])

# attack network.host_path_socket_in_workspace bare=works
def network_host_path_socket_in_workspace():
    # A link in the workspace to a socket outside.
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, f"{WS}/link-socket")

# attack network.host_abstract_socket bare=works
def network_host_abstract_socket():
    return connect(socket.AF_UNIX, socket.SOCK_STREAM, 0, "\0" + W["abstract"])

# attack network.host_abstract_datagram bare=works
def network_host_abstract_datagram():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.sendto(b"attack", "\0" + W["abstract"] + "-datagram")

# attack network.public_udp_route bare=refused closed
def network_public_udp_route():
    return connect(socket.AF_INET, socket.SOCK_DGRAM, 0, ("192.0.2.1", 53))

# attack network.public_udp6_route bare=refused closed
def network_public_udp6_route():
    return connect(socket.AF_INET6, socket.SOCK_DGRAM, 0, ("2001:db8::1", 53))

# attack network.metadata_route bare=refused closed
def network_metadata_route():
    return connect(socket.AF_INET, socket.SOCK_DGRAM, 0, ("169.254.169.254", 80))

# attack network.public_tcp bare=unsafe closed
def network_public_tcp():
    try:
        return connect(socket.AF_INET, socket.SOCK_STREAM, 0, ("192.0.2.1", 443))
    except socket.timeout:
        return "a packet left"

# attack network.name_service bare=unsafe closed
def network_name_service():
    try:
        return socket.getaddrinfo("example.invalid.test", 80)
    except socket.gaierror as e:
        raise Stopped(str(e))

# attack network.metadata_answers bare=unsafe
def network_metadata_answers():
    # With a way out it is the gate that takes the connection, and refuses it by name.
    s = socket.create_connection(("169.254.169.254", 80), 5)
    s.sendall(b"GET / HTTP/1.0\r\nHost: 169.254.169.254\r\n\r\n")
    head = s.recv(64)
    return need(head if b" 403 " not in head else b"", "refused by the gate")

# attack network.private_answers bare=unsafe
def network_private_answers():
    s = socket.create_connection(("10.255.255.1", 443), 5)
    s.sendall(b"hello")
    return need(s.recv(64), "hung up on")

# attack network.public_datagram bare=unsafe
def network_public_datagram():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return s.sendto(b"attack", ("192.0.2.1", 443))

# attack network.interfaces bare=refused
def network_interfaces():
    found = [l.split(":")[0].strip() for l in read("/proc/net/dev").decode().splitlines()[2:]]
    return need([n for n in found if n != "lo"], "only lo")

# attack network.raw_icmp bare=refused
def network_raw_icmp():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).fileno()

# attack network.raw_icmp6 bare=refused
def network_raw_icmp6():
    return socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).fileno()

# attack network.raw_any bare=refused
def network_raw_any():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).fileno()

# attack network.ping bare=refused
def network_ping():
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).fileno()

# attack network.packet bare=refused
def network_packet():
    return first([lambda k=k: socket.socket(socket.AF_PACKET, k, 0x300).fileno() for k in (socket.SOCK_RAW, socket.SOCK_DGRAM)])

# attack network.vsock bare=refused
def network_vsock():
    return socket.socket(40, socket.SOCK_STREAM).fileno()

# attack network.kobject_events bare=works
def network_kobject_events():
    return socket.socket(16, socket.SOCK_RAW, 15).fileno()

# attack network.netlink_others bare=works
def network_netlink_others():
    return first([lambda p=p: socket.socket(16, socket.SOCK_RAW, p).fileno() for p in (4, 6, 9, 12, 16, 20)])

# attack network.crypto bare=refused
def network_crypto():
    return socket.socket(38, socket.SOCK_SEQPACKET).fileno()

# attack network.crypto_high_bits bare=refused
def network_crypto_high_bits():
    return call(41, 38 | 1 << 32, 5, 0)

# attack network.xdp_key_tipc bare=refused
def network_xdp_key_tipc():
    return first([lambda f=f, k=k: socket.socket(f, k, 0).fileno() for f in (44, 15, 30, 29, 31, 21, 9, 3, 41, 43) for k in (1, 2, 3, 5)])

# attack network.udp_lite_sctp bare=works
def network_udp_lite_sctp():
    return first([lambda k=k, p=p: socket.socket(socket.AF_INET, k, p).fileno() for k, p in ((2, 136), (1, 132), (2, 33))])

# attack network.type_high_bits bare=refused
def network_type_high_bits():
    return call(41, 2, 3 | 1 << 32, 1)

# attack network.loopback_flags bare=refused
def network_loopback_flags():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    request = fcntl.ioctl(s, 0x8913, struct.pack("16sh22x", b"lo", 0))
    return fcntl.ioctl(s, 0x8914, request)

# attack network.passed_descriptor bare=refused
def network_passed_descriptor():
    # A socket of the host as one of the three streams.
    found = [n for n in range(3) if stat.S_ISSOCK(os.fstat(n).st_mode)]
    return need(found, "no socket among the streams")
