"""Runs a command while a policy holds some containers. Python 3, with the standard library alone.

usage: policy.py CONTROL_SOCKET LABEL NAME... -- COMMAND...
"""

import http.client
import json
import socket
import subprocess
import sys


class PolicyLease(http.client.HTTPConnection):
    """A policy is in force when a call returns. It ends with the connection, however this process ends: closed, unless told otherwise."""

    def __init__(self, path):
        super().__init__("dns11")
        self.path = path
        self.putrequest("POST", "/v1/policies")
        self.putheader("Transfer-Encoding", "chunked")
        self.endheaders()
        self.replies = self.getresponse()
        if self.replies.status != 200:
            raise RuntimeError(self.replies.read().decode())

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def hold(self, after="closed", **policies):
        line = json.dumps({"policies": policies, "after": after}).encode() + b"\n"
        self.send(b"%x\r\n%s\r\n" % (len(line), line))
        reply = json.loads(self.replies.readline() or '{"error": "dns11 has ended the lease"}')
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["policies"]


if __name__ == "__main__":
    split = sys.argv.index("--")
    path, label, *names = sys.argv[1:split]
    lease = PolicyLease(path)
    lease.hold(harness={"for": [f"label={label}"], "mode": "enforce", "allow": names})
    code = subprocess.call(sys.argv[split + 1 :])
    lease.close()
    sys.exit(code)
