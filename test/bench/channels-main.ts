// Program in a container of the bench that tells the server of an allowed name as much as it can: it asks 127.0.0.11 without end. It
// writes a line when it is refused for the first time, or after many answers. Arguments: the channel, and the name that it is about.
import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";

import { CHANNELS, type Question } from "./channel-list.ts";

const WINDOW = 4;
const REFUSED_MS = 20;
const LOST_MS = 1_000;
const ANSWERS_UNTIL_READY = 20_000;

const [channel = "", base = ""] = process.argv.slice(2);
const next = CHANNELS[channel]?.questions(base);
if (next === undefined) throw new Error(`There is no channel "${channel}"`);
const socket = createSocket("udp4");
const waiting = new Map<number, (reply: Buffer | undefined) => void>();
let answers = 0;
let isReady = false;

function message(
  { labels, type = 1, flags = 0x0100, udpSize = 1232, isDnssecOk = false }: Question,
  id: number,
): Buffer {
  const header = Buffer.alloc(12);
  for (const [index, value] of [id, flags, 1, 0, 0, 1].entries()) header.writeUInt16BE(value, index * 2);
  const fixed = Buffer.from([type >> 8, type & 0xff, 0, 1]);
  const opt = Buffer.from([0, 0, 41, udpSize >> 8, udpSize & 0xff, 0, 0, isDnssecOk ? 0x80 : 0, 0, 0, 0]);
  const name = labels.flatMap((label) => [Buffer.of(label.length), label]);
  return Buffer.concat([header, ...name, Buffer.of(0), fixed, opt]);
}

async function ask(question: Question): Promise<Buffer | undefined> {
  const id = randomInt(0x10000);
  return await new Promise((resolve) => {
    const timer = setTimeout(() => waiting.get(id)?.(undefined), LOST_MS);
    waiting.set(id, (reply) => {
      clearTimeout(timer);
      waiting.delete(id);
      resolve(reply);
    });
    socket.send(message(question, id), 53, "127.0.0.11");
  });
}

async function work(makeNext: () => Question): Promise<void> {
  for (;;) {
    const reply = await ask(makeNext());
    const isRefused = reply?.includes("policy ") === true;
    if (!isReady && (isRefused || (answers += 1) >= ANSWERS_UNTIL_READY)) {
      isReady = true;
      process.stdout.write("ready\n");
    }
    if (isRefused) await new Promise((resolve) => setTimeout(resolve, REFUSED_MS));
  }
}

socket.on("message", (reply) => waiting.get(reply.readUInt16BE(0))?.(reply));
// Ends with the bench.
process.stdin.resume().on("end", () => process.exit(0));
for (let index = 0; index < WINDOW; index++) void work(next);
