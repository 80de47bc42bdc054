"""Writes an image as tools do, from a description on standard input: an OCI layout, gzip layers."""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile

out = sys.argv[1]
wanted = json.load(sys.stdin)
KINDS = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE,
         "device": tarfile.CHRTYPE}
os.makedirs(f"{out}/blobs/sha256")


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def blob(data, kind):
    name = digest(data)
    with open(f"{out}/blobs/sha256/{name[7:]}", "wb") as file:
        file.write(data)
    return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": name, "size": len(data)}


diff_ids, layers = [], []
for entries in wanted["layers"]:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for entry in entries:
            info = tarfile.TarInfo(entry["path"])
            info.type = KINDS[entry.get("kind", "file")]
            info.mode = entry.get("mode", 0o755)
            info.linkname = entry.get("target", "")
            content = entry.get("content", "").encode()
            if "from" in entry:
                with open(entry["from"], "rb") as file:
                    content = file.read()
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    diff_ids.append(digest(raw.getvalue()))
    layers.append(blob(gzip.compress(raw.getvalue(), 1), "layer.v1.tar+gzip"))

machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
configuration = {"architecture": machine, "os": "linux", "config": wanted.get("config", {}),
                 "rootfs": {"type": "layers", "diff_ids": diff_ids}}
config = blob(json.dumps(configuration).encode(), "config.v1+json")
manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode(),
                "manifest.v1+json")
manifest["annotations"] = {"org.opencontainers.image.ref.name": "v1"}
with open(f"{out}/index.json", "w") as file:
    json.dump({"schemaVersion": 2, "manifests": [manifest]}, file)
with open(f"{out}/oci-layout", "w") as file:
    json.dump({"imageLayoutVersion": "1.0.0"}, file)
