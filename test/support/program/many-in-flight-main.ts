// Program that has more descriptors on their way in a channel than its user may have open, without the privileges that would allow
// it. Prints whether a message with descriptors is sent then, and whether it is once the others have arrived.

import { closeSync } from "node:fs";

import { Channel, channelPair } from "../../../src/kernel/channel.ts";

/** Half of the limit that the test sets. */
const descriptors = Array.from({ length: 50 }, () => 0);
const TIMES = 4;
/** The kernel counts those of all programs of a user, so this one has a user of its own. */
const FIRST_USER = 2_000_000_000;

process.setuid?.(FIRST_USER + process.pid);
const [a, b] = channelPair();
const [one, other] = [new Channel(a), new Channel(b)];
const sent = Array.from({ length: TIMES }, () => one.send(Buffer.from("x"), descriptors));
for (let packet = other.receive(); typeof packet === "object"; packet = other.receive())
  for (const fd of packet.descriptors) closeSync(fd);
console.log(JSON.stringify({ first: sent[0], last: sent.at(-1), later: one.send(Buffer.from("x"), descriptors) }));
