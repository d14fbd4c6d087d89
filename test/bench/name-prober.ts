// Sends a query from inside a namespace every millisecond, until a name resolves.

import { createSocket } from "node:dgram";
import { openSync } from "node:fs";

import { encode } from "dns-packet";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { AF_INET, SOCK_DGRAM, connectTo, send, socket } from "../../src/kernel/libc.ts";
import { socketAddress } from "../../src/base/model/address.ts";

const GIVE_UP_MS = 5_000;

export interface NameProber {
  // When it resolved, on the clock of Date.now. Names differ in their first label.
  until(name: string, giveUpMs?: number): Promise<number>;
  // How long one query takes.
  took(name: string): Promise<number>;
  close(): void;
}

export function nameProber(netnsPath: string, server = Uint8Array.of(127, 0, 0, 11), port = 53): NameProber {
  const runner = new NamespaceRunner();
  const fd = runner.within(openSync(netnsPath, "r"), () => {
    const made = socket(AF_INET, SOCK_DGRAM);
    connectTo(made, socketAddress(server, port), server.join("."));
    return made;
  });
  const client = createSocket("udp4");
  client.bind({ fd });
  let onAnswer: (label: string) => void = () => undefined;
  client.on("message", (message) => {
    const count = message.readUInt16BE(6);
    const length = message[12] ?? 0;
    if (count > 0) onAnswer(message.toString("latin1", 13, 13 + length));
  });
  return {
    until: async (name, giveUpMs = GIVE_UP_MS) =>
      await new Promise((resolve, reject) => {
        const query = encode({ type: "query", id: 1, flags: 0x100, questions: [{ type: "A", name }] });
        const [label] = name.split(".");
        const timer = setInterval(() => send(fd, query), 1);
        const end = (): void => {
          clearInterval(timer);
          clearTimeout(late);
        };
        const late = setTimeout(() => {
          end();
          reject(new Error(`${name} did not resolve`));
        }, giveUpMs);
        onAnswer = (answered) => {
          if (answered !== label) return;
          end();
          resolve(Date.now());
        };
      }),
    took: async (name) =>
      await new Promise((resolve, reject) => {
        const query = encode({ type: "query", id: 2, flags: 0x100, questions: [{ type: "A", name }] });
        const late = setTimeout(() => reject(new Error(`no answer for ${name}`)), GIVE_UP_MS);
        const sentMs = performance.now();
        onAnswer = () => {
          clearTimeout(late);
          resolve(performance.now() - sentMs);
        };
        send(fd, query);
      }),
    close: () => client.close(),
  };
}
