// A container that means harm, to be run inside its network namespace: `garbage BYTES` sends so many bytes of it, half of
// them in datagrams of all sizes and half over TCP; `idle COUNT` opens so many connections and says nothing on them. Bounded
// in count and in time; says what it did as a line of JSON.

import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type Socket, connect } from "node:net";
import { setTimeout } from "node:timers/promises";

const RESOLVER = "127.0.0.11";
const DATAGRAM_MAX = 65_507;
const AT_ONCE = 200;
const TIME_MS = 280_000;
const SILENT_MS = 2_000;
const PATIENCE_MS = 50;

const [what = "", amount = "0"] = process.argv.slice(2);
globalThis.setTimeout(() => process.exit(1), TIME_MS).unref();
if (what === "garbage") console.log(JSON.stringify(await sendGarbage(Number(amount))));
else if (what === "idle") await stayIdle(Number(amount));
else process.exit(2);
process.exit(0);

async function sendGarbage(bytes: number): Promise<object> {
  const garbage = randomBytes(1024 * 1024);
  const [datagrams, streamed] = await Promise.all([throwDatagrams(garbage, bytes / 2), pour(garbage, bytes / 2)]);
  return { datagrams, streamed };
}

// Sizes from nothing to the largest, and of the largest most, for the bytes are to come together.
async function throwDatagrams(garbage: Buffer, bytes: number): Promise<number> {
  const socket = createSocket("udp4");
  socket.on("error", () => undefined);
  let count = 0;
  for (let sent = 0; sent < bytes; count++) {
    const size = count % 3 === 0 ? count % 600 : DATAGRAM_MAX;
    const start = (count * 7919) % (garbage.length - size);
    await new Promise<void>((resolve) =>
      socket.send(garbage.subarray(start, start + size), 53, RESOLVER, () => resolve()),
    );
    sent += size;
  }
  socket.close();
  return count;
}

// Whoever is hung up on, or kept waiting, comes again.
async function pour(garbage: Buffer, bytes: number): Promise<number> {
  let poured = 0;
  while (poured < bytes) {
    const socket = connect(53, RESOLVER);
    socket.on("error", () => undefined);
    socket.resume();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    let isPatient = true;
    while (poured < bytes && isPatient && !socket.destroyed) {
      const start = poured % (garbage.length / 2);
      poured += garbage.length / 2;
      if (socket.write(garbage.subarray(start, start + garbage.length / 2))) continue;
      const drained = new Promise((resolve) => socket.once("drain", () => resolve(true)));
      isPatient = (await Promise.race([drained, closed, setTimeout(PATIENCE_MS)])) === true;
    }
    socket.destroy();
    await closed;
  }
  return poured;
}

async function stayIdle(count: number): Promise<void> {
  const open = new Set<Socket>();
  let closed = 0;
  let refused = 0;
  for (let begun = 0; begun < count; begun += AT_ONCE) {
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - begun) }, async () => {
        const socket = connect(53, RESOLVER);
        socket.on("error", () => undefined);
        await Promise.race([once(socket, "connect").catch(() => undefined), once(socket, "close")]);
        if (socket.destroyed) {
          refused++;
          return;
        }
        open.add(socket);
        socket.on("close", () => {
          open.delete(socket);
          closed++;
        });
        socket.resume();
      }),
    );
  }
  const stillOpen = open.size;
  await setTimeout(SILENT_MS);
  console.log(JSON.stringify({ opened: open.size + closed, refused, stillOpen }));
}
