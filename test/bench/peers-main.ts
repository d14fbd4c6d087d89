// Process in a container of the bench: asks a server for names, one after the other, and connects to the address of each answer at once.
// Prints how long the answers took, in microseconds, and how often what came of the connections.
// Arguments: server, port, names with commas between them; how often all of them.
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { performance } from "node:perf_hooks";

import { decode, encode } from "dns-packet";

export interface Asked {
  readonly micros: readonly number[];
  readonly outcomes: Readonly<Record<string, number>>;
}

const [server = "", port = "", listed = "", times = ""] = process.argv.slice(2);
const names = listed.split(",");
const micros: number[] = [];
const outcomes: Record<string, number> = {};
const socket = createSocket("udp4");
let asked = 0;

async function ask(name: string): Promise<string | undefined> {
  const id = (asked += 1) & 0xffff;
  const query = encode({ type: "query", id, flags: 0x100, questions: [{ type: "A", name }] });
  const reply = new Promise<Buffer>((resolve) => {
    const onMessage = (message: Buffer): void => {
      if (message.readUInt16BE(0) !== id) return;
      socket.off("message", onMessage);
      resolve(message);
    };
    socket.on("message", onMessage);
  });
  const start = performance.now();
  socket.send(query, 53, server);
  const found = decode(await reply).answers?.find(({ type }) => type === "A");
  micros.push((performance.now() - start) * 1_000);
  return found?.type === "A" ? found.data : undefined;
}

async function outcomeOf(address: string): Promise<string> {
  return await new Promise((resolve) => {
    const one = connect({ host: address, port: Number(port) });
    const end = (what: string): void => {
      one.resetAndDestroy();
      resolve(what);
    };
    one.on("connect", () => end("open"));
    one.on("error", ({ code }: NodeJS.ErrnoException) => end(code ?? "error"));
  });
}

for (let round = 0; round < Number(times); round++) {
  for (const name of names) {
    const address = await ask(name);
    const outcome = address === undefined ? "no address" : await outcomeOf(address);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
}
process.stdout.write(JSON.stringify({ micros, outcomes } satisfies Asked));
process.exit(0);
