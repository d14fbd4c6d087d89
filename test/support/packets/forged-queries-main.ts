/**
 * Sends DNS queries as raw frames from a link of the namespace, with source addresses of the caller's choice: as they are, in one VLAN
 * tag of no network, and in two. Each name has the form that it came in as its first label.
 *
 *   forged-queries-main LINK_INDEX LINK_MAC GATEWAY_MAC SOURCE DESTINATION NAME
 */
import { SOCK_RAW, sendTo, socket } from "../../../src/kernel/libc.ts";
import { aQuery } from "../scripted/builders.ts";
import { aPacket } from "./udp-packet.ts";

const AF_PACKET = 17;
const ETH_P_ALL = 0x0300;
const MACS_BYTES = 12;
const TAG = Buffer.of(0x81, 0x00, 0x00, 0x00);
const FORMS: Readonly<Record<string, Buffer>> = {
  plain: Buffer.alloc(0),
  tag: TAG,
  tags: Buffer.concat([TAG, TAG]),
  service: Buffer.concat([Buffer.of(0x88, 0xa8, 0x00, 0x00), TAG]),
};

const [index = "", own = "", gateway = "", source = "", destination = "", name = ""] = process.argv.slice(2);
const macs = Buffer.concat([gateway, own].map((mac) => Buffer.from(mac.replaceAll(":", ""), "hex")));
const raw = socket(AF_PACKET, SOCK_RAW, ETH_P_ALL);
const link = Buffer.alloc(20);
link.writeUInt16LE(AF_PACKET, 0);
link.writeUInt16BE(0x0800, 2);
link.writeInt32LE(Number(index), 4);
link[11] = 6;
macs.copy(link, 12, 0, 6);

for (const [form, tags] of Object.entries(FORMS)) {
  const frame = aPacket({
    payload: aQuery({ name: `${form}.${name}`, type: 1 }),
    from: source.split(".").map(Number),
    to: destination.split(".").map(Number),
  });
  const bytes = Buffer.concat([macs, tags, frame.subarray(MACS_BYTES)]);
  if (sendTo(raw, bytes, link) !== bytes.length) throw new Error(`The frame ${form} was not sent`);
}
