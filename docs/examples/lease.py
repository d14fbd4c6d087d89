"""Faults in DNS for a test in Python 3, with the standard library alone.

usage: lease.py CONTROL_SOCKET CONTAINER NAME
"""

import http.client
import json
import socket
import sys


class Lease(http.client.HTTPConnection):
    """Rules are in force when a call returns, and gone with the connection, however this process ends."""

    def __init__(self, path):
        super().__init__("dns11")
        self.path = path
        self.putrequest("POST", "/v1/lease")
        self.putheader("Transfer-Encoding", "chunked")
        self.endheaders()
        self.replies = self.getresponse()
        if self.replies.status != 200:
            raise RuntimeError(self.replies.read().decode())

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, **request):
        line = json.dumps(request).encode() + b"\n"
        self.send(b"%x\r\n%s\r\n" % (len(line), line))
        while True:
            reply = json.loads(self.replies.readline() or '{"error": "dns11 has ended the lease"}')
            if "error" in reply:
                raise RuntimeError(reply["error"])
            # What a recording has recorded comes in between.
            if "recorded" not in reply:
                return reply

    def fault(self, name, action, **options):
        return self.ask(rule={"name": name, "action": action, **options})["id"]

    def remove(self, rule):
        self.ask(remove=rule)

    def report(self):
        return self.ask(report=True)["report"]["rules"]


if __name__ == "__main__":
    path, container, name = sys.argv[1:]
    lease = Lease(path)
    lease.fault(name, "servfail", **{"in": {"container": container}, "count": 2})
    print("in force", flush=True)
    sys.stdin.readline()
    for rule in lease.report():
        print(f"{rule['text']}: applied to {rule['applied']} of {rule['matched']} queries", flush=True)
    lease.close()
