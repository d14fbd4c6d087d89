// Child process of EngineProxy. Arguments: the engine's socket, and its own. A line names a container whose inspect fails from then
// on, or waits where "wait " stands before it; an empty line ends all of that. Each is answered by an empty line, as the start is.
import { type IncomingMessage, type ServerResponse, createServer, request } from "node:http";
import { createInterface } from "node:readline";

const INSPECT = /\/containers\/([0-9a-f]{64})\/json/;
const [socketPath = "", path = ""] = process.argv.slice(2);
const failing = new Set<string>();
const waiting = new Map<string, (() => void)[]>();

const server = createServer((incoming, outgoing) => void answer(incoming, outgoing));

async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { url = "", method, headers } = incoming;
  const [, id = ""] = INSPECT.exec(url) ?? [];
  if (failing.has(id)) {
    outgoing.writeHead(500, { "content-type": "application/json" }).end('{"message":"it cannot be inspected"}');
    return;
  }
  const others = waiting.get(id);
  if (others !== undefined) await new Promise<void>((resolve) => others.push(resolve));
  const passed = request({ socketPath, path: url, method, headers }, (reply) => {
    outgoing.writeHead(reply.statusCode ?? 502, reply.headers);
    outgoing.flushHeaders();
    reply.pipe(outgoing);
  });
  passed.on("error", () => outgoing.destroy());
  outgoing.on("close", () => passed.destroy());
  incoming.pipe(passed);
}

function endAll(): void {
  failing.clear();
  const all = [...waiting.values()].flat();
  waiting.clear();
  for (const end of all) end();
}

server.listen(path, () => console.log());
createInterface({ input: process.stdin })
  .on("line", (line) => {
    if (line === "") endAll();
    else if (line.startsWith("wait ")) waiting.set(line.slice(5), []);
    else failing.add(line);
    console.log();
  })
  .on("close", () => process.exit());
