/**
 * The lower tiers of the rules beside a real engine: they serve as the first one does, come back when they are flushed, go
 * with SIGTERM, and stay after SIGKILL until somebody cleans up or dns11 begins anew.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { EXIT } from "../../cmd/exit-code.ts";
import type { RuleBackend } from "../../src/base/model/rule-backend.ts";
import type { Container } from "../support/engine/container.ts";
import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { outcomesOf, QueryLoop } from "../support/client/query-loop.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

/** A client asks so long before and after what happens. */
const LONGER_MS = 500;
const LOWER = ["nft", "iptables-legacy"] as const;
/** What only Docker's resolver and only dns11 say of how long a name may be remembered. */
const DOCKERS_TTL = 600;
const OUR_TTL = 5;
const OURS = /dns11|DNS11/;

let engine: Engine;
let web: Container;
let client: Container;

before(async () => ({ engine, web, client } = await startPair()));
after(async () => await engine[Symbol.asyncDispose]());

async function assertAnswered(ttl: number): Promise<void> {
  for (const transport of ["+notcp", "+tcp"]) {
    const reply = await dig(client, "web", transport);
    assert.deepEqual(dataOf(reply), [web.address("n1")], reply.raw);
    assert.equal(reply.answer[0]?.ttl, ttl, reply.raw);
  }
}

async function rules(): Promise<string> {
  const commands = [["nft", "list", "ruleset"], ["iptables-legacy-save"], ["ip6tables-legacy-save"]] as const;
  const outputs = await Promise.all(commands.map(async ([command, ...args]) => await client.enter(command, args)));
  return outputs.map(({ stdout }) => stdout).join("\n");
}

async function serve(tier: RuleBackend, options: { readonly stateDir?: string } = {}): Promise<Dns11> {
  return await startDns11(engine, { ...options, args: ["--rule-backend", tier, "--keeper", "off"] });
}

async function cleanup(instance: Dns11): Promise<string> {
  const { code, stdout, stderr } = await dns11(["cleanup", "-H", engine.host, "--state-dir", instance.stateDir]);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function kill(instance: Dns11): Promise<void> {
  instance.kill("SIGKILL");
  await inTime(instance.exited, "the end of dns11");
}

/** Nobody listens where the rules lead; by UDP nobody even says so, because the refusal is of no zone of ours. */
async function assertUnanswered(): Promise<void> {
  const replies = await Promise.all(["+notcp", "+tcp"].map(async (way) => await dig(client, "web", way, "+time=1")));
  for (const { status, raw } of replies) assert.equal(status, "", raw);
  assert.match(replies[0]?.raw ?? "", /timed out/);
}

for (const tier of LOWER) {
  test(`${tier}: names resolve, it is said what a kill would leave, and SIGTERM leaves nothing`, async () => {
    await using instance = await serve(tier);
    assert.equal((await instance.status()).ruleBackend, tier);
    const shown = await dns11(["status", "-H", engine.host, "--state-dir", instance.stateDir]);
    assert.match(shown.stdout, new RegExp(`rule backend: ${tier} \\(rules stay if dns11 is killed`));
    assert.match(instance.log, /stay when dns11 is killed or hangs/);
    await assertAnswered(OUR_TTL);
    assert.match(await rules(), OURS);
    assert.equal(await instance.stop(), 0);
    assert.doesNotMatch(await rules(), OURS);
    await assertAnswered(DOCKERS_TTL);
  });

  test(`${tier}: rules that somebody flushes are put back`, async () => {
    await using instance = await serve(tier);
    const flush = tier === "nft" ? ["nft", "delete", "table", "ip", "dns11"] : ["iptables-legacy", "-t", "nat", "-F"];
    const [command = "", ...args] = flush;
    await client.enter(command, args);
    const ours = async (): Promise<DigReply | undefined> => {
      const reply = await dig(client, "web");
      return reply.answer[0]?.ttl === OUR_TTL ? reply : undefined;
    };
    await waitFor("dns11 to answer again", ours);
    assert.equal((await instance.waitFor("client", "attached")).repairs, 1);
    assert.equal(await instance.stop(), 0);
    assert.doesNotMatch(await rules(), OURS);
  });

  test(`${tier}: taking over and SIGTERM lose no query`, async () => {
    await using fresh = await QueryLoop.start(client, { name: "web", perSecond: 1_000 });
    await using kept = await QueryLoop.start(client, { name: "web", perSecond: 100, sourcePort: "any" });
    await pause(LONGER_MS);
    // Before and after this Docker's resolver answers alone, and what it loses on a busy machine is its own.
    const sinceMs = Date.now();
    await using instance = await serve(tier);
    await waitFor("queries to come to dns11", async () => {
      const counters = (await instance.container("client"))?.counters;
      return (counters?.["local"] ?? 0) > 100 ? true : undefined;
    });
    assert.equal(await instance.stop(), 0);
    const untilMs = Date.now();
    await pause(LONGER_MS);
    for (const asking of [fresh, kept]) {
      const during = (await asking.stop()).filter(({ atMs }) => atMs >= sinceMs && atMs <= untilMs);
      assert.deepEqual(Object.keys(outcomesOf(during)), ["NOERROR"], instance.log);
    }
  });

  test(`${tier}: after SIGKILL nobody is answered until cleanup, which says what it removed`, async () => {
    await using instance = await serve(tier);
    await kill(instance);
    assert.match(await rules(), OURS);
    await assertUnanswered();
    const title = tier === "nft" ? 'table ip "dns11"' : "chains DNS11-* of iptables-legacy";
    const said = await cleanup(instance);
    for (const name of ["client", "web"]) assert.ok(said.includes(`${name}: removed orphaned ${title}\n`), said);
    assert.doesNotMatch(await rules(), OURS);
    await assertAnswered(DOCKERS_TTL);
  });

  test(`${tier}: an instance that begins after SIGKILL takes over, of this tier and of the best one`, async () => {
    for (const next of [tier, "nft-owner"] as const) {
      await using first = await serve(tier);
      await kill(first);
      await using second = await serve(next, { stateDir: first.stateDir });
      assert.equal((await second.status()).ruleBackend, next);
      await assertAnswered(OUR_TTL);
      assert.equal(await second.stop(), 0);
      assert.doesNotMatch(await rules(), OURS);
      await assertAnswered(DOCKERS_TTL);
    }
  });

  test(`${tier}: rules of an instance that runs are neither taken over nor cleaned up`, async () => {
    await using first = await serve(tier);
    await using second = await serve(tier);
    const refused = await second.container("client");
    assert.equal(refused?.code, "OWNED_ELSEWHERE", JSON.stringify(refused));
    assert.equal(await second.stop(), 0);
    assert.match(await cleanup(second), /client: kept .*: a running process owns it/);
    await assertAnswered(OUR_TTL);
    assert.equal(await first.stop(), 0);
    assert.doesNotMatch(await rules(), OURS);
  });
}

/** In front of the program: a file of the machine's that is empty for it. */
function without(path: string): string[] {
  return ["unshare", "-m", "sh", "-c", `mount --bind /dev/null ${path} && exec "$@"`, "sh"];
}

test("nft with a keeper: after SIGKILL Docker's resolver answers, and nothing is left", async () => {
  await using instance = await startDns11(engine, { args: ["--rule-backend", "nft"] });
  assert.equal((await instance.status()).ruleBackend, "nft");
  await waitFor("the keeper to hold both", async () => {
    const { keeper } = await instance.status();
    return keeper.state === "watching" && keeper.namespaces === 2 ? true : undefined;
  });
  assert.doesNotMatch(instance.log, /stay when dns11 is killed/);
  await assertAnswered(OUR_TTL);
  instance.kill("SIGKILL");
  await waitFor("the rules to be gone", async () => (OURS.test(await rules()) ? undefined : true));
  await assertAnswered(DOCKERS_TTL);
});

test("iptables-legacy has no keeper, and it is said what a kill would leave", async () => {
  await using instance = await startDns11(engine, { args: ["--rule-backend", "iptables-legacy"] });
  assert.equal((await instance.status()).keeper.state, "off");
  assert.match(instance.log, /stay when dns11 is killed or hangs/);
  assert.equal(await instance.stop(), 0);
});

test("a tier that is wished for and not possible ends the run, and it is said why and what is needed", async () => {
  await using instance = new Dns11(engine.host, {
    args: ["--rule-backend", "iptables-legacy"],
    prefix: without("/usr/sbin/xtables-legacy-multi"),
  });
  assert.equal(await inTime(instance.exited, "dns11 to refuse"), EXIT.cannotServe);
  assert.match(instance.log, /iptables-legacy: iptables-legacy not found/);
  assert.match(instance.log, /iptables-legacy needs the programs iptables-legacy and nsenter/);
  await assertAnswered(DOCKERS_TTL);
});

test("without the target CT iptables-legacy serves without zones, and says so", async () => {
  const { stdout } = await engine.enter("find", ["/usr/lib", "-name", "libxt_CT.so"]);
  await using instance = await startDns11(engine, {
    args: ["--rule-backend", "iptables-legacy"],
    prefix: without(stdout.trim()),
  });
  assert.match(instance.log, /without connection tracking zones/);
  // A port that somebody asked from in the last half minute is Docker's as long as the kernel remembers that, also for the
  // probe of the first attachment.
  await instance.waitFor("client", "attached");
  await client.enter("conntrack", ["-F"]);
  await assertAnswered(OUR_TTL);
  assert.doesNotMatch(await rules(), /--zone/);
  assert.equal(await instance.stop(), 0);
});
