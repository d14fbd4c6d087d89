// Child process of EngineProxy. Arguments: the engine's socket, and its own. A line names a container whose inspect fails from then
// on; an empty line ends all failures. Each is answered by an empty line, as the start is.
import { createServer, request } from "node:http";
import { createInterface } from "node:readline";

const INSPECT = /\/containers\/([0-9a-f]{64})\/json/;
const [socketPath = "", path = ""] = process.argv.slice(2);
const failing = new Set<string>();

const server = createServer((incoming, outgoing) => {
  const { url = "", method, headers } = incoming;
  const [, id = ""] = INSPECT.exec(url) ?? [];
  if (failing.has(id)) {
    outgoing.writeHead(500, { "content-type": "application/json" }).end('{"message":"it cannot be inspected"}');
    return;
  }
  const passed = request({ socketPath, path: url, method, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    outgoing.flushHeaders();
    answer.pipe(outgoing);
  });
  passed.on("error", () => outgoing.destroy());
  outgoing.on("close", () => passed.destroy());
  incoming.pipe(passed);
});
server.listen(path, () => console.log());
createInterface({ input: process.stdin })
  .on("line", (id) => {
    if (id === "") failing.clear();
    else failing.add(id);
    console.log();
  })
  .on("close", () => process.exit());
