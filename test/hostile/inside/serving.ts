// Owns a name server of the attacker's, in its container: what each query gets by UDP and by TCP is the attack's own. The
// container's resolver asks it where it was given with --dns, and the host's server for the names below evil.test.

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, type Server, type Socket } from "node:net";
import { networkInterfaces } from "node:os";

import { onEachMessage } from "../../support/rig/framed.ts";

export type Replies = {
  // Nothing is sent for undefined; several are sent in this order.
  readonly udp?: (query: Buffer) => readonly Buffer[];
  // Writes what it likes, framed or not.
  readonly tcp?: (query: Buffer, connection: Socket) => void;
};

export class Serving {
  readonly #sockets: (UdpSocket | Server)[] = [];
  readonly #replies: Replies;
  accepted = 0;
  asked = 0;

  constructor(replies: Replies) {
    this.#replies = replies;
  }

  // At loopback, and where the host reaches this container; not at every address, which would take 127.0.0.11's port.
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
      this.asked++;
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
        this.asked++;
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

// The name that is asked for, in lower case.
export function nameIn(query: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; (query[at] ?? 0) !== 0; at += 1 + (query[at] ?? 0)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + (query[at] ?? 0)).toLowerCase());
  }
  return labels.join(".");
}
