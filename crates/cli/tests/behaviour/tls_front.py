# Something that speaks TLS before a server: its files are a certificate and its key, as DER.
import base64, os, select, socket, ssl, sys, tempfile, threading

certificate, key, behind = sys.argv[1:4]
host, port = behind.rsplit(":", 1)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
with tempfile.TemporaryDirectory() as place:
    chain, secret = os.path.join(place, "chain"), os.path.join(place, "key")
    with open(chain, "w") as file:
        file.write(ssl.DER_cert_to_PEM_cert(open(certificate, "rb").read()))
    with open(secret, "w") as file:
        text = base64.encodebytes(open(key, "rb").read()).decode()
        file.write(f"-----BEGIN PRIVATE KEY-----\n{text}-----END PRIVATE KEY-----\n")
    context.load_cert_chain(chain, secret)


def carry(raw):
    try:
        near = context.wrap_socket(raw, server_side=True)
    except OSError:
        return
    far = socket.create_connection((host, int(port)))
    try:
        while True:
            ready = [near] if near.pending() else select.select([near, far], [], [])[0]
            for side in ready:
                data = side.recv(65536)
                if not data:
                    return
                (far if side is near else near).sendall(data)
    except OSError:
        pass
    finally:
        near.close()
        far.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=carry, args=(listener.accept()[0],), daemon=True).start()
