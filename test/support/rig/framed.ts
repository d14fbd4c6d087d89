/** Reader of DNS messages on a TCP connection, each behind its two-octet length, for the name servers of tests. */
import type { Socket } from "node:net";

export function onEachMessage(connection: Socket, act: (message: Buffer) => void): void {
  let pending = Buffer.alloc(0);
  connection.on("error", () => connection.destroy());
  connection.on("data", (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0);
      const message = pending.subarray(2, end);
      pending = pending.subarray(end);
      act(message);
    }
  });
}
