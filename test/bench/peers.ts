// Policies beside what others do: dnsmasq, which puts addresses into a set of nftables as it answers (--nftset), and a script that
// resolves its list once when a container starts. What an answer costs, whether an address is open when its answer arrives, and what
// happens to names whose addresses change, to what dnsmasq answers from its cache, and to other containers.
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { dig, dataOf } from "../support/client/dig.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { stdoutOf } from "../support/program/command.ts";
import { connectTo } from "../support/rig/internet.ts";
import { type RealServer, startDnsmasq } from "../support/servers/real-server.ts";
import { NAME_SERVER, POLICY, Siege } from "../siege/siege.ts";
import { cpuSeconds } from "./cpu-time.ts";
import { type Row, quantile } from "./figures.ts";
import type { Asked } from "./peers-main.ts";

const ASKER = fileURLToPath(new URL("./peers-main.js", import.meta.url));
const PORT = 443;
const GATEWAY = "10.78.0.1";
// Each name is new, and its address is one of 250.
const ASKED = 2_000;
const ROTATIONS = 50;
// How long an address stays in dnsmasq's set, where it does not stay for ever; its answer is good for a minute.
const KEPT_SECONDS = 2;
const DNSMASQ_LINES = ["no-daemon", "cache-size=10000", `server=${NAME_SERVER}`];

const newNames = (word: string, count: number): string[] =>
  Array.from({ length: count }, (_each, index) => `${word}${index}-${index % 250}.good.ok.test`);

export async function benchPeers(): Promise<Row[]> {
  await using siege = await Siege.begin("forky");
  await siege.setPolicy(POLICY.replace("allow: [", 'allow: ["**.turns.test:443", '));
  const { engine } = siege;
  await engine.docker("network", "create", "--subnet", "10.78.0.0/24", "peers");
  const held = await runContainer(engine, { name: "held", networks: ["peers"] });
  const other = await runContainer(engine, { name: "other", networks: ["peers"] });
  const ask = async (from: Container, server: string, names: readonly string[], times = 1): Promise<Asked> => {
    const args = [ASKER, server, String(PORT), names.join(","), String(times)];
    return JSON.parse(stdoutOf(await from.enter(process.execPath, args), "asker")) as Asked;
  };
  const rows: Row[] = [];
  const costRow = async (what: string, pid: number, found: () => Promise<Asked>): Promise<void> => {
    const before = cpuSeconds(pid);
    const { micros, outcomes } = await found();
    const each = ((cpuSeconds(pid) - before) / micros.length) * 1e6;
    const [p50, p99] = [quantile(micros, 0.5), quantile(micros, 0.99)].map((one) => one.toFixed(0));
    const measured = `${p50} and ${p99} us, ${each.toFixed(0)} us of the server's processor time; ${shown(outcomes)}`;
    rows.push({ what: `${ASKED} new names, p50 and p99, then a connection to each: ${what}`, measured });
  };
  const { pid } = siege.instance;
  await ask(siege.agent, "127.0.0.11", newNames("w", ASKED));
  await costRow("dns11", pid, async () => await ask(siege.agent, "127.0.0.11", newNames("d", ASKED)));
  await setRules(siege, "timeout 1h;");
  {
    await using plain = await dnsmasq(siege, []);
    await costRow("dnsmasq that opens nothing", plain.pid, async () => await ask(other, GATEWAY, newNames("p", ASKED)));
  }
  {
    await using server = await dnsmasq(siege, NFTSET);
    await costRow("dnsmasq --nftset", server.pid, async () => await ask(held, GATEWAY, newNames("m", ASKED)));
  }
  rows.push(...(await rotationRows(siege, held, ask)));
  rows.push(...(await cacheRows(siege, held, other, ask)));
  return rows;
}

const NFTSET = ["nftset=/ok.test/turns.test/4#inet#peers#open"];
type Ask = (from: Container, server: string, names: readonly string[], times?: number) => Promise<Asked>;

async function dnsmasq({ engine }: Siege, lines: readonly string[]): Promise<RealServer> {
  return await startDnsmasq(engine, { address: GATEWAY, lines: [...DNSMASQ_LINES, ...lines] });
}

// As guides for dnsmasq have it: what is in the set is open, for whom the rule is.
async function setRules({ engine }: Siege, timeout: string): Promise<void> {
  const rules = `add table inet peers
delete table inet peers
table inet peers { set open { type ipv4_addr; flags timeout; ${timeout} };
  chain forward { type filter hook forward priority -10; ct state established accept;
    ip saddr 10.78.0.0/24 ip daddr @open accept; ip saddr 10.78.0.0/24 meta l4proto tcp reject with tcp reset; ip saddr 10.78.0.0/24 reject; }; }`;
  stdoutOf(await engine.enter("nft", ["-f", "-"], { input: rules }), "nft");
}

async function rotationRows(siege: Siege, held: Container, ask: Ask): Promise<Row[]> {
  const names = ["api.turns.test"];
  const row = (what: string, { outcomes }: Asked): Row => ({
    what: `${ROTATIONS} connections to a name whose address changes: ${what}`,
    measured: shown(outcomes),
  });
  const rows = [row("dns11", await ask(siege.agent, "127.0.0.11", names, ROTATIONS))];
  await setRules(siege, "timeout 1h;");
  {
    await using _server = await dnsmasq(siege, NFTSET);
    rows.push(row("dnsmasq --nftset", await ask(held, GATEWAY, names, ROTATIONS)));
  }
  await setRules(siege, "timeout 1h;");
  await using _plain = await dnsmasq(siege, []);
  for (const address of dataOf(await dig(held, `@${GATEWAY}`, "api.turns.test")))
    await siege.engine.enter("nft", ["add", "element", "inet", "peers", "open", `{ ${address} }`]);
  rows.push(row("a script that resolves once", await ask(held, GATEWAY, names, ROTATIONS)));
  return rows;
}

async function cacheRows(siege: Siege, held: Container, other: Container, ask: Ask): Promise<Row[]> {
  await setRules(siege, `timeout ${KEPT_SECONDS}s;`);
  await using _server = await dnsmasq(siege, NFTSET);
  const names = ["kept-7.good.ok.test"];
  const first = await ask(held, GATEWAY, names);
  await sleep(2 * KEPT_SECONDS * 1_000);
  const late = await ask(held, GATEWAY, names);
  const own = [await ask(siege.agent, "127.0.0.11", names)];
  await sleep(2 * KEPT_SECONDS * 1_000);
  own.push(await ask(siege.agent, "127.0.0.11", names));
  await setRules(siege, "timeout 1h;");
  await ask(held, GATEWAY, ["opened-8.good.ok.test"]);
  const peer = await connectTo(other, "192.0.2.8", PORT);
  await ask(siege.agent, "127.0.0.11", ["opened-9.good.ok.test"]);
  const neighbour = await connectTo(siege.neighbour, "192.0.2.9", PORT);
  return [
    {
      what: `dnsmasq --nftset with a timeout of ${KEPT_SECONDS} s, an answer from the cache after ${2 * KEPT_SECONDS} s`,
      measured: `${shown(first.outcomes)}, then ${shown(late.outcomes)}`,
    },
    {
      what: `dns11, an answer from the cache after ${2 * KEPT_SECONDS} s`,
      measured: own.map(({ outcomes }) => shown(outcomes)).join(", then "),
    },
    { what: "another container connects to what was opened: dnsmasq --nftset", measured: peer },
    { what: "another container connects to what was opened: dns11", measured: neighbour },
  ];
}

function shown(outcomes: Asked["outcomes"]): string {
  return Object.entries(outcomes)
    .map(([what, count]) => `${count} ${what}`)
    .join(", ");
}
