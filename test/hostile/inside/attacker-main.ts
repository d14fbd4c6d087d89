// The attacker's program, run in a container without capabilities. Arguments: the attack and its amount. It is bounded in count
// and time, and prints a report as one line of JSON.

import { garbage, hostQuestions, newNames, questions, malformedQueries } from "./floods.ts";
import {
  deadZones,
  deniedEdns,
  fatalReplies,
  forgedLoop,
  forgedRecords,
  malformedReplies,
  truncatedReplies,
} from "./replies.ts";
import { grabbedPorts, manySockets } from "./sockets.ts";
import { hoardedConnections, idle, slowDrip, unreadReplies, waitingQueries } from "./streams.ts";

const PROGRAMS = {
  deadZones,
  deniedEdns,
  fatalReplies,
  forgedLoop,
  garbage,
  grabbedPorts,
  hoardedConnections,
  hostQuestions,
  idle,
  forgedRecords,
  manySockets,
  newNames,
  questions,
  slowDrip,
  malformedQueries,
  malformedReplies,
  truncatedReplies,
  unreadReplies,
  waitingQueries,
};
export type AttackProgram = keyof typeof PROGRAMS;

const TIME_MS = 120_000;

const [what = "", amount = "0", part = "0"] = process.argv.slice(2);
setTimeout(() => process.exit(1), TIME_MS).unref();
const program = Object.entries(PROGRAMS).find(([name]) => name === what)?.[1];
if (program === undefined) process.exit(2);
console.log(JSON.stringify(await program(Number(amount), Number(part))));
process.exit(0);
