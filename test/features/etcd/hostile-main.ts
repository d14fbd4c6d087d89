/**
 * A server in the place of a member of etcd that means ill: each connection gets another kind of reply that no client should
 * believe, wait for or hold in memory. Arguments: address, ports.
 */
import { type ServerResponse, createServer } from "node:http";

const [address = "", ...ports] = process.argv.slice(2);
const BLOCK = "x".repeat(64 * 1024);

/** Writes as fast as the client reads, for ever. */
function flood(response: ServerResponse, block: string): void {
  const more = (): void => {
    while (!response.destroyed && response.write(block));
  };
  response.on("drain", more);
  more();
}

const REPLIES: readonly ((response: ServerResponse) => void)[] = [
  (response) => flood(response, BLOCK),
  (response) => flood(response, `${JSON.stringify({ result: { created: true, events: [] } })}\n`),
  (response) => void response.end("<html>no JSON</html>"),
  (response) => void response.writeHead(302, { location: "http://127.0.0.1:1/" }).end(),
  (response) => void response.end("[".repeat(100_000)),
  (response) =>
    void response.end(JSON.stringify({ header: { revision: "1e99" }, kvs: [{ key: 7 }, null, "x"], more: true })),
  // One byte now and then, and never an end.
  (response) => {
    const timer = setInterval(() => response.write(" "), 500);
    response.on("close", () => clearInterval(timer));
  },
  (response) => void response.destroy(),
];

let count = 0;
for (const port of ports) {
  const server = createServer((request, response) => {
    request.resume();
    response.on("error", () => undefined);
    const reply = REPLIES[count++ % REPLIES.length];
    process.stderr.write(`reply ${count}\n`);
    reply?.(response);
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.listen(Number(port), address, () => process.stderr.write(`listening at ${port}\n`));
}
