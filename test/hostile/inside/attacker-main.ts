// The attacker's program, run in a container without capabilities. Arguments: the attack and its amount. It is bounded in count
// and time, and prints a report as one line of JSON.

import { garbage, newNames, questions, spoiltQueries } from "./floods.ts";
import {
  deadZones,
  deniedEdns,
  fatalReplies,
  forgedLoop,
  liesAboutOthers,
  spoiltReplies,
  truncatedReplies,
} from "./replies.ts";
import { grabbedPorts, manySockets } from "./sockets.ts";
import { hoardedConnections, idle, slowDrip, unreadReplies, waitingQueries } from "./streams.ts";

const DEEDS = {
  deadZones,
  deniedEdns,
  fatalReplies,
  forgedLoop,
  garbage,
  grabbedPorts,
  hoardedConnections,
  idle,
  liesAboutOthers,
  manySockets,
  newNames,
  questions,
  slowDrip,
  spoiltQueries,
  spoiltReplies,
  truncatedReplies,
  unreadReplies,
  waitingQueries,
};
export type Deed = keyof typeof DEEDS;

const TIME_MS = 120_000;

const [what = "", amount = "0", part = "0"] = process.argv.slice(2);
setTimeout(() => process.exit(1), TIME_MS).unref();
const deed = Object.entries(DEEDS).find(([name]) => name === what)?.[1];
if (deed === undefined) process.exit(2);
console.log(JSON.stringify(await deed(Number(amount), Number(part))));
process.exit(0);
