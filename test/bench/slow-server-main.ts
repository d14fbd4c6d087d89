// The process of a name server that is slow: it works on so many queries at once, each takes so long, and the rest waits. Every
// name is unknown, and nothing may be cached. Arguments: address, how many at once, and milliseconds. It ends with its input.

import { createSocket } from "node:dgram";

const [address = "", atOnce = "", tookMs = ""] = process.argv.slice(2);
const NXDOMAIN = 3;
const waiting: (() => void)[] = [];
let working = 0;

function begin(): void {
  while (working < Number(atOnce)) {
    const answer = waiting.shift();
    if (answer === undefined) return;
    working++;
    setTimeout(() => {
      answer();
      working--;
      begin();
    }, Number(tookMs));
  }
}

const socket = createSocket("udp4");
socket.on("message", (message, { address: peer, port }) => {
  const questionEnd = message.indexOf(0, 12) + 5;
  const reply = Buffer.from(message.subarray(0, questionEnd));
  reply.writeUInt16BE(0x8180 | NXDOMAIN, 2);
  reply.fill(0, 6, 12);
  waiting.push(() => socket.send(reply, port, peer));
  begin();
});
await new Promise<void>((resolve) => socket.bind(53, address, resolve));
process.stdout.write("ready\n");
process.stdin.on("end", () => process.exit(0)).resume();
