// The attacker's queries to 127.0.0.11 from its container: at a rate without waiting, or with a number in flight.

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import { withLength } from "../../../src/base/lib/stream-reader.ts";
import { aQuery, TYPE } from "../../support/scripted/builders.ts";

const RESOLVER = "127.0.0.11";
const SEND_EVERY_MS = 10;
const ANSWER_MS = 1_000;

export async function udpSocket(server = RESOLVER): Promise<UdpSocket> {
  const socket = createSocket("udp4");
  socket.on("error", () => undefined);
  socket.connect(53, server);
  await once(socket, "connect");
  return socket;
}

export async function sendUdp(socket: UdpSocket, message: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    try {
      socket.send(message, () => resolve());
    } catch {
      resolve();
    }
  });
}

// Resolves on the event or on an error: a reset is what an attacker must expect, while once() rejects on it.
export async function eventOf(socket: Socket, event: "close" | "connect" | "drain"): Promise<void> {
  await once(socket, event).catch(() => undefined);
}

// undefined if the connection is refused.
export async function tcpSocket(): Promise<Socket | undefined> {
  const socket = connect(53, RESOLVER);
  socket.on("error", () => undefined);
  await Promise.race([eventOf(socket, "connect"), eventOf(socket, "close")]);
  return socket.destroyed ? undefined : socket;
}

export function query(name: string, id: number, type: number = TYPE.A): Buffer {
  return aQuery({ id: id & 0xffff, name, type, opt: { udpSize: 1232 } });
}

export function framedQuery(name: string, id: number, type: number = TYPE.A): Buffer {
  return withLength(query(name, id, type));
}

// Queries each name once at a fixed rate, whether or not replies come. Returns the counts.
export async function queryEach(
  names: (index: number) => string,
  { count, perSecond }: { readonly count: number; readonly perSecond: number },
): Promise<{ readonly sent: number; readonly answered: number }> {
  const socket = await udpSocket();
  let answered = 0;
  socket.on("message", () => answered++);
  const startMs = performance.now();
  let sent = 0;
  while (sent < count) {
    const due = Math.min(count, ((performance.now() - startMs) / 1000) * perSecond + 1);
    for (; sent < due; sent++) await sendUdp(socket, query(names(sent), sent));
    await pause(SEND_EVERY_MS);
  }
  await pause(SEND_EVERY_MS);
  socket.close();
  return { sent, answered };
}

// Keeps a number of queries in flight: the next one starts when another was answered or timed out.
export async function queryInFlight(
  names: (index: number) => string,
  { count, inFlight }: { readonly count: number; readonly inFlight: number },
): Promise<{ readonly sent: number; readonly answered: number }> {
  const socket = await udpSocket();
  const waiting = new Map<number, () => void>();
  let [sent, answered] = [0, 0];
  socket.on("message", (reply: Buffer) => {
    const end = waiting.get(reply.readUInt16BE(0));
    if (end === undefined) return;
    answered++;
    end();
  });
  const queryOne = async (): Promise<void> => {
    const index = sent++;
    const id = index & 0xffff;
    await sendUdp(socket, query(names(index), id));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => waiting.get(id)?.(), ANSWER_MS);
      waiting.set(id, () => {
        clearTimeout(timer);
        waiting.delete(id);
        resolve();
      });
    });
  };
  const sender = async (): Promise<void> => {
    while (sent < count) await queryOne();
  };
  await Promise.all(Array.from({ length: inFlight }, sender));
  socket.close();
  return { sent, answered };
}
