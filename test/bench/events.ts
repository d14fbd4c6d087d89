// From the engine's event to the answer: a container starts, and another one asks for its name every millisecond until
// it is told. Also how long the engine itself made us wait for the facts: its inspect returns only after the start.

import { createSocket } from "node:dgram";
import { openSync } from "node:fs";

import { encode } from "dns-packet";

import { Bracket } from "../../src/container/namespace/bracket.ts";
import { AF_INET, SOCK_DGRAM, connectTo, send, socket } from "../../src/kernel/libc.ts";
import { socketAddress } from "../../src/model/address.ts";
import { createNetwork, runContainer } from "../support/container.ts";
import { startDns11 } from "../support/dns11.ts";
import { startEngine } from "../support/engine.ts";
import { type Row, median, quantile } from "./figures.ts";

const STARTS = 20;
const GIVE_UP_MS = 5_000;

export async function benchEvents(): Promise<Row[]> {
  await using engine = await startEngine({ suite: "forky" });
  await createNetwork(engine, "n1");
  const client = await runContainer(engine, { name: "client", networks: ["n1"] });
  await using instance = await startDns11(engine);
  const ask = asker(client.netnsPath);
  const delays: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    const name = `late${index}`;
    const answered = ask.until(name);
    const container = await runContainer(engine, { name, networks: ["n1"] });
    const atMs = await answered;
    delays.push(atMs - (await startedAtMs(engine.docker.bind(engine), container.id)));
  }
  ask.close();
  await instance.stop();
  const [p50, p99] = [median(delays), quantile(delays, 0.99)];
  return [
    { what: "event `start` to the name answering elsewhere, p50", measured: `${p50.toFixed(1)} ms` },
    {
      what: "event `start` to the name answering elsewhere, p99",
      measured: `${p99.toFixed(1)} ms`,
      target: "<= 20 ms",
      isReached: p99 <= 20,
    },
  ];
}

// The engine's own time of the event.
async function startedAtMs(docker: (...args: string[]) => Promise<string>, id: string): Promise<number> {
  const now = String(Math.ceil(Date.now() / 1000) + 1);
  const args = ["--since", "0", "--until", now, "--filter", `container=${id}`, "--filter", "event=start"];
  const text = await docker("events", ...args, "--format", "{{.TimeNano}}");
  return Number(BigInt(text.trim().split("\n")[0] ?? "0") / 1000n) / 1000;
}

// Asks from a socket inside the container's namespace.
function asker(netnsPath: string): { until(name: string): Promise<number>; close(): void } {
  const bracket = new Bracket();
  const fd = bracket.within(openSync(netnsPath, "r"), () => {
    const made = socket(AF_INET, SOCK_DGRAM);
    connectTo(made, socketAddress(Uint8Array.of(127, 0, 0, 11), 53), "127.0.0.11");
    return made;
  });
  const client = createSocket("udp4");
  client.bind({ fd });
  let onAnswer: (name: string) => void = () => undefined;
  client.on("message", (message) => {
    const answers = message.readUInt16BE(6);
    const length = message[12] ?? 0;
    if (answers > 0) onAnswer(message.toString("latin1", 13, 13 + length));
  });
  return {
    until: async (name) =>
      await new Promise((resolve, reject) => {
        const query = encode({ type: "query", id: 1, flags: 0x100, questions: [{ type: "A", name }] });
        const timer = setInterval(() => send(fd, query), 1);
        const late = setTimeout(() => reject(new Error(`${name} was never answered`)), GIVE_UP_MS);
        onAnswer = (answered) => {
          if (answered !== name) return;
          clearInterval(timer);
          clearTimeout(late);
          resolve(Date.now());
        };
      }),
    close: () => client.close(),
  };
}
