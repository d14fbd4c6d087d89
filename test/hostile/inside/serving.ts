// Serving: a nameserver of the attacker in its container, whose UDP and TCP replies each attack defines. It is queried as the
// container's --dns server, and by the host's server for the names below evil.test.

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";

import { onEachMessage } from "../../support/rig/framed.ts";

export type Replies = {
  // Sent in this order; none if undefined.
  readonly udp?: (query: Buffer) => readonly Buffer[];
  // May write anything, framed or not.
  readonly tcp?: (query: Buffer, connection: Socket) => void;
};

export class Serving {
  readonly #sockets: (UdpSocket | Server)[] = [];
  readonly #replies: Replies;
  accepted = 0;
  queries = 0;

  constructor(replies: Replies) {
    this.#replies = replies;
  }

  // On loopback and on the container's addresses; not on the wildcard address, which would take the port of 127.0.0.11.
  static async at(replies: Replies): Promise<Serving> {
    const serving = new Serving(replies);
    const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.map(({ address }) => address));
    for (const address of addresses.filter((each) => !each.includes(":"))) {
      await serving.#serveUdp(address);
      await serving.#serveTcp(address);
    }
    return serving;
  }

  async #serveUdp(address: string): Promise<void> {
    const socket = createSocket("udp4");
    this.#sockets.push(socket);
    socket.on("message", (query, { port, address: peer }) => {
      this.queries++;
      for (const reply of this.#replies.udp?.(query) ?? []) socket.send(reply, port, peer, () => undefined);
    });
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind(53, address, resolve);
    });
  }

  async #serveTcp(address: string): Promise<void> {
    const server = createServer((connection) => {
      this.accepted++;
      connection.on("error", () => connection.destroy());
      onEachMessage(connection, (query) => {
        this.queries++;
        this.#replies.tcp?.(query, connection);
      });
    });
    this.#sockets.push(server);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(53, address, 4096, resolve);
    });
  }
}

// The queried name in lower case.
export function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; (query[at] ?? 0) !== 0; at += 1 + (query[at] ?? 0)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + (query[at] ?? 0)).toLowerCase());
  }
  return labels.join(".");
}
