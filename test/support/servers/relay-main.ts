/**
 * Relay into a network namespace: connections to a Unix socket go on to a port on its loopback. So a test talks to a
 * server in there without a process for each request. Arguments: the path of the socket, the port.
 */
import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";

const [path = "", port = ""] = process.argv.slice(2);
rmSync(path, { force: true });

const server = createServer((client) => {
  const target = connect(Number(port), "127.0.0.1");
  for (const [one, other] of [
    [client, target],
    [target, client],
  ] as const) {
    one.pipe(other);
    one.on("error", () => other.destroy());
    one.on("close", () => other.destroy());
  }
});
server.listen(path, () => process.stderr.write("relaying\n"));
