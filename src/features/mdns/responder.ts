/**
 * Responder: a small DNS server for names in local, at a port of the engine's host that the kernel chooses and only that host
 * reaches. So the forwarder asks the local network as it asks any server, with its cache, limits and time budget.
 */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { type Server as TcpServer, type Socket, createServer } from "node:net";

import { RCODE } from "../../base/dns/rcode.ts";
import { TYPE } from "../../base/dns/record-type.ts";
import { CLASS } from "../../base/dns/record.ts";
import { UDP_BYTES_MIN } from "../../base/dns/sizes.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { withLength } from "../../base/lib/framing.ts";
import { guard } from "../../base/lib/guard.ts";
import { StreamReader } from "../../base/lib/stream-reader.ts";
import { LIMITS } from "../../base/limits.ts";
import { addressBytes, socketAddress } from "../../base/model/address.ts";
import { DEFAULT_BEHAVIOUR } from "../../base/model/behaviour.ts";
import { presentation } from "../../base/dns/name.ts";
import { bindWaiting } from "../../container/namespace/sockets.ts";
import { AF_INET, SOCK_STREAM, bindTo, closeQuietly, listenOn, socket } from "../../kernel/libc.ts";
import { Question } from "../../query/wire/question.ts";
import { addressAnswer, failure, nameError, noData } from "../../query/wire/reply.ts";
import type { Family } from "./daemons.ts";
import { MDNS_LIMITS } from "./limits.ts";
import { type LookedUp, type Lookups, isLanName } from "./lookups.ts";

export const ADDRESS = "127.0.0.1";
const PORT_TRIES = 16;
/** Room for every reply: all addresses of a name, in the longest name there is. */
const BLOCK_BYTES = LIMITS.udpQueryBytes + 1024;
const FAMILIES: ReadonlyMap<number, Family> = new Map([
  [TYPE.A, 4],
  [TYPE.AAAA, 6],
]);
const inOrder = (count: number): Uint16Array => Uint16Array.from({ length: count }, (_, index) => index);

interface Bound {
  readonly udp: number;
  readonly tcp: number;
  readonly port: number;
}

type Find = Pick<Lookups, "find">;

export class Responder {
  readonly port: number;
  readonly #lookups: Find;
  readonly #udp: UdpSocket;
  readonly #tcp: TcpServer;
  readonly #streams = new Set<Socket>();
  #isClosed = false;

  /** Takes ownership of the sockets. */
  constructor({ udp, tcp, port }: Bound, lookups: Find) {
    this.port = port;
    this.#lookups = lookups;
    this.#udp = createSocket("udp4");
    this.#udp.on("message", (message, from) => guard.run("udp", 0, () => this.#answerPacket(message, from)));
    this.#udp.on("error", () => undefined);
    this.#udp.bind({ fd: udp });
    this.#tcp = createServer((stream) => guard.run("tcp", 0, () => this.#accept(stream)));
    this.#tcp.maxConnections = MDNS_LIMITS.streams;
    this.#tcp.on("error", () => undefined);
    this.#tcp.listen({ fd: tcp });
    for (const each of [this.#udp, this.#tcp]) each.unref();
  }

  close(): void {
    this.#isClosed = true;
    this.#udp.close();
    this.#tcp.close();
    for (const stream of this.#streams) stream.destroy();
  }

  #answerPacket(message: Buffer, { port, address }: RemoteInfo): void {
    answer(message, UDP_BYTES_MIN, this.#lookups, (reply) => {
      if (!this.#isClosed) this.#udp.send(reply, port, address, () => undefined);
    });
  }

  #accept(stream: Socket): void {
    const reader = new StreamReader();
    this.#streams.add(stream);
    stream.unref();
    stream.setTimeout(MDNS_LIMITS.streamIdleMs, () => stream.destroy());
    stream.on("error", () => undefined);
    stream.on("close", () => this.#streams.delete(stream));
    stream.on("data", (chunk) =>
      guard.run("tcp", 0, () => {
        reader.push(chunk);
        for (let message = reader.next(); message !== undefined; message = reader.next()) {
          answer(Buffer.from(message), LIMITS.udpQueryBytes, this.#lookups, (reply) => {
            if (!stream.destroyed) stream.write(withLength(reply));
          });
        }
      }),
    );
  }
}

/** Binds both sockets to one port. Call inside the namespace of the engine's host. */
export function bindResponder(): Bound {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const { udp, listening } = bindWaiting(ADDRESS);
    const tcp = socket(AF_INET, SOCK_STREAM);
    try {
      bindTo(tcp, socketAddress(addressBytes(ADDRESS) as Uint8Array, listening.udpPort), ADDRESS);
      listenOn(tcp, MDNS_LIMITS.streams);
      return { udp, tcp, port: listening.udpPort };
    } catch (error) {
      for (const fd of [udp, tcp]) closeQuietly(fd);
      if (codeOf(error) !== "EADDRINUSE") throw error;
    }
  }
  throw new Fault("NO_PORT", "No port of 127.0.0.1 is free for both UDP and TCP", {
    remedy: "Find the program that has opened so many on this machine: ss -lnp src 127.0.0.1",
  });
}

/** Answers a query; what is none gets no reply. The bytes of `message` may be used meanwhile. */
export function answer(message: Buffer, limit: number, lookups: Find, respond: (reply: Buffer) => void): void {
  if (message.length > LIMITS.udpQueryBytes) return;
  const block = Buffer.alloc(BLOCK_BYTES);
  message.copy(block);
  const question = new Question(true);
  if (question.read(block, 0, message.length) !== "answer") return;
  const name = presentation(question.folded, 0, question.foldedLength);
  const family = FAMILIES.get(question.type);
  const reply = (length: number): void => respond(block.subarray(0, length));
  if (question.class !== CLASS.IN || family === undefined)
    return reply(noData(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds));
  if (!isLanName(name)) return reply(nameError(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds));
  lookups.find(name, family, (found) => reply(write(block, question, family, found, limit)));
}

function write(block: Buffer, question: Question, family: Family, found: LookedUp, limit: number): number {
  if (found === "failed") return failure(block, question, RCODE.SERVFAIL, DEFAULT_BEHAVIOUR);
  if (found === "absent") return nameError(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds);
  if (found.length === 0) return noData(block, question, DEFAULT_BEHAVIOUR, MDNS_LIMITS.absentSeconds);
  return addressAnswer(block, question, Buffer.concat(found), family === 4 ? 4 : 16, {
    limit,
    ttlSeconds: MDNS_LIMITS.ttlSeconds,
    isSorted: true,
    shuffle: inOrder,
    behaviour: DEFAULT_BEHAVIOUR,
  });
}
