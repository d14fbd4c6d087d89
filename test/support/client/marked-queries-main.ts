/**
 * Queries a name at 127.0.0.11 in the namespace that it runs in, with every mark of a list: through a socket, and as
 * packets that it puts on lo itself, past all rules, as CAP_NET_RAW allows. Prints the addresses it was told, and how
 * many replies each way got, as one line of JSON. Arguments: the name, and how many small marks.
 */
import { setTimeout as pause } from "node:timers/promises";

import { socketAddress } from "../../../src/base/model/address.ts";
import {
  AF_INET,
  SOCK_DGRAM,
  SOCK_RAW,
  addressOf,
  bindTo,
  receive,
  sendTo,
  setMark,
  socket,
} from "../../../src/kernel/libc.ts";
import { CLIENT_PORT, aPacket } from "../packets/udp-packet.ts";
import { aQuery } from "../scripted/builders.ts";

const AF_PACKET = 17;
const ETH_P_IP = 0x0800;
const LOOPBACK_INDEX = 1;
const QUIET_ROUNDS = 20;

const [name = "", count = "0"] = process.argv.slice(2);
const marks = [
  ...Array.from({ length: Number(count) }, (_, mark) => mark),
  ...Array.from({ length: 32 }, (_, bit) => 2 ** bit),
];
const query = aQuery({ name, type: 1 });
const memory = Buffer.allocUnsafeSlow(512);
const told = new Set<string>();

const local = socket(AF_INET, SOCK_DGRAM);
bindTo(local, socketAddress(Uint8Array.of(127, 0, 0, 1), CLIENT_PORT), "the client's port");
const resolver = socketAddress(Uint8Array.of(127, 0, 0, 11), 53);

const raw = socket(AF_PACKET, SOCK_RAW, (ETH_P_IP >> 8) | ((ETH_P_IP & 0xff) << 8));
const link = Buffer.alloc(20);
link.writeUInt16LE(AF_PACKET, 0);
link.writeUInt16BE(ETH_P_IP, 2);
link.writeInt32LE(LOOPBACK_INDEX, 4);
link[11] = 6;

const bySocket = await repliesTo((mark) => {
  setMark(local, mark);
  sendTo(local, query, resolver);
});
const byPacket = await repliesTo((mark) => {
  setMark(raw, mark);
  sendTo(raw, aPacket({ payload: query }), link);
});
console.log(JSON.stringify({ told: [...told], bySocket, byPacket }));

async function repliesTo(send: (mark: number) => void): Promise<number> {
  let replies = 0;
  for (const mark of marks) {
    send(mark);
    replies += drain();
  }
  for (let quiet = 0; quiet < QUIET_ROUNDS && replies < marks.length; quiet++) {
    await pause(100);
    const more = drain();
    replies += more;
    if (more > 0) quiet = 0;
  }
  return replies;
}

function drain(): number {
  let replies = 0;
  for (;;) {
    const length = receive(local, addressOf(memory), memory.length);
    if (length < 0) return replies;
    replies++;
    if (memory.readUInt16BE(6) > 0) told.add([...memory.subarray(length - 4, length)].join("."));
  }
}
