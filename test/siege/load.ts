// Load: a container asks and connects all the time, for what is allowed and for what is not, while something happens.
import assert from "node:assert/strict";

import { QueryLoop, droppedIn, outcomesOf } from "../support/client/query-loop.ts";
import { MARK } from "../support/packets/hostile-frames.ts";
import { stdoutOf } from "../support/program/command.ts";
import { ALLOWED, DENIED, type Siege } from "./siege.ts";

// Queries a second; half of them for what is not allowed. A busy machine does not answer the 500 of make siege.
const QUERIES = Number(process.env["SIEGE_QUERIES"] ?? 100);
// Connects to two addresses in turn until its input ends, and prints how often what came of it.
const CONNECTOR = `
const { connect } = require("node:net");
const counts = {};
let isDone = false;
const count = (address, what) => { counts[address] ??= {}; counts[address][what] = (counts[address][what] ?? 0) + 1; };
const next = (address, port) => {
  if (isDone) return;
  const one = connect({ host: address, port });
  const end = (what) => { count(address, what); one.destroy(); setTimeout(next, 10, address, port); };
  one.once("data", () => end("open"));
  one.once("error", ({ code }) => end(code));
};
for (const each of process.argv.slice(1)) next(each, 443);
process.stdin.on("end", () => { isDone = true; setTimeout(() => { console.log(JSON.stringify(counts)); process.exit(); }, 200); }).resume();`;

// Throws unless all that is allowed succeeds, and all else is refused. Returns how much that was, in words.
export async function underLoad(siege: Siege, happens: () => Promise<void>): Promise<string> {
  const { agent } = siege;
  await siege.leaks();
  const droppedBefore = await droppedIn(agent);
  let end: () => void = () => undefined;
  const until = new Promise<void>((resolve) => (end = resolve));
  const addresses = [ALLOWED.address, DENIED.address];
  const connector = agent.enter(process.execPath, ["-e", CONNECTOR, ...addresses], { until, timeoutMs: 600_000 });
  connector.catch(() => undefined);
  await using denied = await QueryLoop.start(agent, {
    name: `${MARK}.ok.test`,
    isEachNew: true,
    perSecond: QUERIES / 2,
  });
  await using allowed = await QueryLoop.start(agent, {
    name: ALLOWED.below,
    isEachNew: true,
    perSecond: QUERIES / 2,
  });
  await happens();
  const [no, yes] = [outcomesOf(await denied.stop()), outcomesOf(await allowed.stop())];
  end();
  const seen = JSON.parse(stdoutOf(await connector, "connector")) as Record<string, Record<string, number>>;
  assert.deepEqual(await siege.leaks(), []);
  const dropped = (await droppedIn(agent)) - droppedBefore;
  const found = JSON.stringify({ denied: no, allowed: yes, ...seen, dropped });
  // On a busy machine a socket may have no room for a query, and nobody can answer that.
  const unanswered = [no, yes].map((each) => each["timeout"] ?? 0);
  assert.ok(unanswered.reduce((sum, each) => sum + each) <= dropped, found);
  for (const each of [no, yes]) delete each["timeout"];
  assert.deepEqual([Object.keys(no), Object.keys(yes)], [["NXDOMAIN"], ["NOERROR"]], found);
  assert.deepEqual(
    addresses.map((each) => Object.keys(seen[each] ?? {})),
    [["open"], ["ECONNREFUSED"]],
    found,
  );
  return found;
}
