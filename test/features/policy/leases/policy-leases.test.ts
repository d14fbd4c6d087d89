/**
 * Policies that clients make while dns11 runs: they narrow and never widen, hold before the first query, and when a client, dns11 or both
 * are gone, what they were for is closed. The meter is the log of the server outside.
 */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after as afterAll, before, beforeEach, test } from "node:test";

import * as fc from "fast-check";

import type { LeaseConnection } from "../../../../src/api/lease-connection.ts";
import { connect } from "../../../../src/api/suite.ts";
import { isInternalError } from "../../../../src/base/lib/fault.ts";
import type { Policy } from "../../../../src/features/policy/model/policy.ts";
import { PolicyLeases, LeaseStore } from "../../../../src/features/policy/leases/policy-leases.ts";
import { dig } from "../../../support/client/dig.ts";
import { type Container, createNetwork, runContainer } from "../../../support/engine/container.ts";
import { type Engine, startEngine } from "../../../support/engine/engine.ts";
import { SYSTEM_PATH } from "../../../support/program/command.ts";
import { type Dns11, replaceDns11, startDns11 } from "../../../support/program/dns11.ts";
import { runs } from "../../../support/rig/runs.ts";
import { waitFor } from "../../../support/rig/wait.ts";
import { type Upstream, startUpstream } from "../../../support/servers/upstream.ts";

const SETTINGS = `version: 1
policies:
  agents:
    for: [network=agents]
    mode: enforce
    allow: [both.ok.test, settings.ok.test]
`;

const folder = mkdtempSync(join(tmpdir(), "d11-leases-"));
const file = join(folder, "dns11.yaml");
const START = { args: ["--config", file] };
let engine: Engine;
let upstream: Upstream;
let instance: Dns11;
let free: Container;
let agent: Container;
let other: Container;

before(async () => {
  writeFileSync(file, SETTINGS);
  engine = await startEngine({ suite: "bookworm" });
  upstream = await startUpstream(engine);
  for (const network of ["agents", "open"]) await createNetwork(engine, network);
  free = await runContainer(engine, { name: "free", networks: ["open"], labels: { team: "a" } });
  other = await runContainer(engine, { name: "other", networks: ["open"] });
  agent = await runContainer(engine, { name: "agent", networks: ["agents"], labels: { team: "a" } });
  instance = await startDns11(engine, START);
});
afterAll(async () => {
  await instance[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  for (const { name } of [free, other, agent]) await instance.waitFor(name, "attached");
});

const TEAM = { for: ["label=team=a"], mode: "enforce", allow: ["both.ok.test", "lease.ok.test"] };

/** Whether a container gets a name; one that it does not get has not left the machine, by the server's own log. */
async function passes(container: Container, name: string): Promise<boolean> {
  await upstream.forget();
  const { status } = await dig(container, name);
  if (status !== "NOERROR") assert.deepEqual(await upstream.queriesFor(name), [], name);
  return status === "NOERROR";
}

async function held(policies: Record<string, object>, after?: "open" | "closed"): Promise<LeaseConnection> {
  const lease = await instance.client.openPolicyLease();
  await lease.send({ policies, ...(after && { after }) });
  return lease;
}

/** What is closed is forgotten: a lease with the same name and choice takes its place, and leaves it open. */
async function reopen(name = "team", choice: readonly string[] = TEAM.for): Promise<void> {
  const lease = await held({ [name]: { ...TEAM, for: choice } }, "open");
  await lease.close();
}

test("a lease refuses what it does not allow, from the next query on, and says whose it is", async () => {
  assert.ok(await passes(free, "before.ok.test"));
  const lease = await held({ team: TEAM });
  assert.ok(!(await passes(free, "after.ok.test")));
  assert.deepEqual(await upstream.queriesFor("after.ok.test"), [], "it never left");
  assert.ok(await passes(free, "lease.ok.test"));
  assert.ok(await passes(other, "after.ok.test"), "others are not concerned");
  const report = await instance.client.policies();
  const own = report.policies.find(({ name }) => name === "lease/team");
  assert.match(own?.where ?? "", /^lease of node.*, pid \d+$/);
  assert.match(
    (await instance.client.explain({ container: "free", name: "x.ok.test" })).steps.map(({ why }) => why).join(),
    /lease of node/,
  );
  assert.match(instance.log, /a client has made a policy/);
  await lease.close();
  await reopen();
  await waitFor("it to be open", async () => ((await passes(free, "again.ok.test")) ? true : undefined));
});

test("it narrows what the settings say, and never widens: not by its rules, and not by a label", async () => {
  const chooser = await runContainer(engine, {
    name: "chooser",
    networks: ["open"],
    labels: { "io.dns11.policy": "lease/team" },
  });
  await instance.waitFor("chooser", "attached");
  const lease = await held({ team: TEAM });
  assert.deepEqual(
    await Promise.all(["both", "settings", "lease"].map(async (name) => await passes(agent, `${name}.ok.test`))),
    [true, false, false],
  );
  assert.ok(!(await passes(chooser, "lease.ok.test")), "a policy that the settings do not define");
  await lease.close();
  await reopen();
  await chooser.remove();
});

test("a container that starts later is held before its first query", async () => {
  const lease = await held({ team: { ...TEAM, for: ["label=team=b"] } });
  const script = "for i in 1 2 3 4 5; do nslookup -type=a first$i.ok.test; done >/dev/null 2>&1; sleep 300";
  const late = await runContainer(engine, {
    name: "late",
    networks: ["open"],
    labels: { team: "b" },
    command: ["sh", "-c", script],
  });
  await instance.waitFor("late", "attached");
  assert.ok(!(await passes(late, "late.ok.test")));
  await lease.close();
  assert.ok(!(await passes(late, "lease.ok.test")), "closed, as it still runs");
  await late.remove();
  await reopen("team", ["label=team=b"]);
});

test("at its end what it was for is closed, or open if the client says so", async () => {
  const open = await held({ team: TEAM }, "open");
  assert.ok(!(await passes(free, "n1.ok.test")));
  await open.close();
  await waitFor("it to be open", async () => ((await passes(free, "n2.ok.test")) ? true : undefined));
  const changed = await held({ team: TEAM });
  assert.deepEqual(await changed.send({ after: "open" }), { line: 2, policies: ["lease/team"] });
  assert.ok(!(await passes(free, "n3.ok.test")), "its policies stay");
  await changed.close();
  await waitFor("it to be open", async () => ((await passes(free, "n4.ok.test")) ? true : undefined));
  const closed = await held({ team: TEAM });
  await closed.close();
  await waitFor("it to be closed", async () => ((await passes(free, "lease.ok.test")) ? undefined : true));
  assert.deepEqual(
    (await instance.client.policies()).policies
      .filter(({ name }) => name.startsWith("lease/team#"))
      .map(({ allow }) => allow),
    [0],
  );
  await reopen();
});

test("what it denies of this machine stays denied after its end, also in the next process", async () => {
  assert.ok(await passes(free, "other"));
  const lease = await held({ team: { ...TEAM, deny: ["other"] } });
  assert.ok(!(await passes(free, "other")));
  await lease.close();
  await waitFor("it to be closed", async () => ((await passes(free, "lease.ok.test")) ? undefined : true));
  assert.ok(!(await passes(free, "other")));
  await instance.stop();
  instance = await startDns11(engine, { ...START, stateDir: instance.stateDir });
  await instance.waitFor("free", "attached");
  assert.ok(!(await passes(free, "other")));
  await reopen();
  await waitFor("it to be open", async () => ((await passes(free, "other")) ? true : undefined));
});

test("with addresses: enforce, the kernel holds a container that runs when the call returns", async () => {
  const lease = await held({ team: { ...TEAM, addresses: "enforce" } });
  const { containers } = await instance.client.policies();
  assert.equal(containers.find(({ container }) => container === "free")?.addresses?.state, "enforced");
  await lease.close();
  await reopen();
  const admin = await runContainer(engine, { name: "admin", networks: ["open"], args: ["--cap-add", "NET_ADMIN"] });
  await instance.waitFor("admin", "attached");
  const dns = await connect({ stateDir: instance.stateDir, engine: engine.host });
  const request = { for: "container=admin", allow: [], addresses: "enforce" } as const;
  await assert.rejects(dns.policy(request), /does not hold admin: .*NET_ADMIN/s);
  dns.close();
  await admin.remove();
});

test("a program learns the reason where all policies are leases", async () => {
  writeFileSync(file, "version: 1\n");
  await instance.reload();
  const lease = await held({ team: TEAM });
  await waitFor("the reason", async () =>
    (await dig(free, "evil.test.why.dns11.alt", "TXT")).raw.includes("refused: policy lease/team") ? true : undefined,
  );
  await lease.close();
  await reopen();
  writeFileSync(file, SETTINGS);
  await instance.reload();
});

test("of those that have ended for the same containers one is left, and a container that is started again stays closed", async () => {
  const closed = async (): Promise<string[]> =>
    (await instance.client.policies()).policies.map(({ name }) => name).filter((name) => name.startsWith("lease/run-"));
  for (let run = 0; run < 3; run++) await (await held({ [`run-${run}`]: TEAM })).close();
  await waitFor("one of them", async () => ((await closed()).length === 1 ? true : undefined));
  await free.stop();
  await free.start();
  await instance.waitFor("free", "attached");
  assert.ok(!(await passes(free, "lease.ok.test")));
  await reopen("run-2");
});

test("mistakes are named, and leave what was in force", async () => {
  const lease = await held({ team: TEAM });
  const fails = async (line: unknown, message: RegExp): Promise<void> =>
    await assert.rejects(lease.send(line as never), message);
  await fails({ policies: { team: { ...TEAM, allow: ["http://x"] } } }, /team\.allow/);
  await fails({ policies: { team: { mode: "enforce", allow: [] } } }, /no "for"/);
  await fails({ policies: {} }, /has no policies/);
  await fails({ policies: { team: TEAM }, until: "now" }, /Unknown key "until"/);
  await fails({ policies: { team: TEAM }, after: "never" }, /"closed" or "open"/);
  await fails([], /has no policies/);
  await fails({ policies: { team: { ...TEAM, modes: 1 } } }, /modes/);
  const second = await instance.client.openPolicyLease();
  await assert.rejects(second.send({ policies: { team: TEAM } }), /Another lease has a policy lease\/team/);
  await second.close();
  assert.ok(!(await passes(free, "mistake.ok.test")));
  assert.ok(await passes(free, "lease.ok.test"));
  await lease.close();
  await reopen();
});

test("one process has its share of leases, and a lease that has ended counts no more", async () => {
  const all: LeaseConnection[] = [];
  await assert.rejects(async () => {
    for (let count = 0; count < 40; count++) all.push(await instance.client.openPolicyLease());
  }, /8 leases are open by node/);
  assert.equal(all.length, 8);
  await Promise.all(all.map(async (each) => await each.close()));
  await waitFor("another one", async () => {
    const again = await instance.client.openPolicyLease().catch(() => undefined);
    await again?.close();
    return again && true;
  });
});

test("a killed client leaves it closed, a killed dns11, too, until the client's policy is in force again", async () => {
  const policies = join(folder, "team.yaml");
  writeFileSync(policies, `policies: {team: ${JSON.stringify(TEAM)}}\n`);
  const apply = spawn(
    process.execPath,
    ["dist/cmd/dns11.js", "policy", "apply", policies, "--state-dir", instance.stateDir, "-H", engine.host],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let said = "";
  apply.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
  await waitFor("it to be in force", () => {
    if (apply.exitCode !== null) throw new Error(`it has ended: ${said}`);
    return said.includes("in force: lease/team") ? true : undefined;
  });
  assert.ok(await passes(free, "lease.ok.test"));
  instance.kill("SIGKILL");
  await instance.ended();
  assert.ok(!(await passes(free, "killed.ok.test")), "its keeper refuses");
  instance = await startDns11(engine, { ...START, stateDir: instance.stateDir });
  await instance.waitFor("free", "attached");
  assert.ok(!(await passes(free, "between.ok.test")));
  await waitFor("it to be in force again", () => (said.includes("in force again") ? true : undefined));
  assert.ok(await passes(free, "lease.ok.test"));
  assert.ok(!(await passes(free, "again.ok.test")));
  const next = await replaceDns11(engine, instance, START);
  await instance[Symbol.asyncDispose]();
  instance = next;
  await waitFor("it to be in force at the next one", () =>
    said.match(/in force again/g)?.length === 2 ? true : undefined,
  );
  assert.ok(await passes(free, "lease.ok.test"));
  assert.ok(!(await passes(free, "replaced.ok.test")));
  apply.kill("SIGKILL");
  await waitFor("it to be closed", async () => ((await passes(free, "lease.ok.test")) ? undefined : true));
  await instance.stop();
  instance = await startDns11(engine, { ...START, stateDir: instance.stateDir });
  await instance.waitFor("free", "attached");
  assert.ok(!(await passes(free, "later.ok.test")), "also after both have gone");
  await reopen();
  await waitFor("it to be open", async () => ((await passes(free, "open.ok.test")) ? true : undefined));
});

test("the client library, and a harness in Python with nothing but the socket, hold a container while they run", async () => {
  const dns = await connect({ stateDir: instance.stateDir, engine: engine.host });
  const unnamed = [dns.policy({ for: "container=x1" }), dns.policy({ for: "container=x2" })];
  for (const each of await Promise.all(unnamed)) await each.end();
  const held2 = await dns.policy({ name: "suite", for: "container=other", allow: ["lease.ok.test"], after: "open" });
  assert.equal(held2.name, "lease/suite");
  assert.deepEqual([await passes(other, "lease.ok.test"), await passes(other, "suite.ok.test")], [true, false]);
  await held2.end();
  await assert.rejects(dns.policy({ for: "container=other", allows: [] } as never), /allows/);
  dns.close();
  const [own = ""] = readdirSync(instance.stateDir);
  const socket = join(instance.stateDir, own, "control.sock");
  const gate = join(folder, "gate");
  const harness = spawn(
    "python3",
    [
      "docs/examples/policy.py",
      socket,
      "team=a",
      "lease.ok.test",
      "--",
      "sh",
      "-c",
      `while [ ! -e ${gate} ]; do sleep 0.1; done; exit 7`,
    ],
    { env: { ...process.env, PATH: SYSTEM_PATH }, stdio: "inherit" },
  );
  const code = exitOf(harness);
  await waitFor("the harness", async () =>
    (await instance.client.policies()).policies.some(({ name }) => name === "lease/harness") ? true : undefined,
  );
  assert.deepEqual([await passes(free, "lease.ok.test"), await passes(free, "python.ok.test")], [true, false]);
  writeFileSync(gate, "");
  assert.equal(await code, 7);
  await waitFor("it to be closed", async () => ((await passes(free, "lease.ok.test")) ? undefined : true));
  await reopen("harness");
});

test("whatever a line says, it is answered, and nothing that it left is in the folder", async () => {
  const own = mkdtempSync(join(folder, "fuzz-"));
  const leases = new PolicyLeases({
    book: bookOf(() => undefined),
    folder: own,
    onEvent: () => undefined,
    learnLabel: async () => await Promise.resolve(),
    onFirst: () => undefined,
  });
  const lease = leases.open({ pid: 1, command: "fuzz" });
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (line) => {
      const answer = await leases.handle(lease, line);
      assert.ok("error" in answer && answer.error.length > 0, line);
    }),
    { numRuns: runs(8) },
  );
  assert.deepEqual(readdirSync(own), []);
  leases.close();
});

test("a line with mistakes is refused with each of them once, and without a file", async () => {
  const leases = new PolicyLeases({
    book: bookOf(() => undefined),
    folder: mkdtempSync(join(folder, "mistakes-")),
    onEvent: () => undefined,
    learnLabel: async () => await Promise.resolve(),
    onFirst: () => undefined,
  });
  const lease = leases.open({ pid: 1, command: "x" });
  const refused = await leases.handle(lease, JSON.stringify({ policies: { one: { ...TEAM, for: ["x"] } } }));
  const error = "error" in refused ? refused.error : "";
  assert.match(
    error,
    /^policies\.one\.for\[0\]: invalid choice of containers "x": use network=NAME[^/]*\. Write it as/,
  );
  leases.end(lease);
  leases.close();
});

test("where it cannot be written whom to close, a policy is refused, and those in force stay", async () => {
  const own = mkdtempSync(join(folder, "full-"));
  const inForce: string[][] = [];
  const leases = new PolicyLeases({
    book: bookOf((policies) => void inForce.push(policies.map(({ name }) => name.split("#", 1)[0] ?? ""))),
    folder: own,
    onEvent: () => undefined,
    learnLabel: async () => await Promise.resolve(),
    onFirst: () => undefined,
  });
  const lease = leases.open({ pid: 1, command: "x" });
  const line = (name: string): string => JSON.stringify({ policies: { [name]: TEAM } });
  assert.deepEqual(await leases.handle(lease, line("one")), { policies: ["lease/one"] });
  // Nothing can be renamed to what is a folder.
  rmSync(new LeaseStore(own).path);
  mkdirSync(new LeaseStore(own).path);
  const refused = await leases.handle(lease, line("two"));
  assert.match("error" in refused ? refused.error : "", /cannot be written: EISDIR: (?!.*EISDIR)/);
  leases.end(lease);
  assert.deepEqual(inForce, [["lease/one"], ["lease/one"]]);
  leases.close();
});

test("a file of ended leases closes those it names, and a bad one is named and removed by nobody", () => {
  const own = mkdtempSync(join(folder, "store-"));
  const store = new LeaseStore(own);
  assert.deepEqual(store.read(), []);
  const good = {
    name: "lease/x",
    where: "lease of x",
    for: ["label=a"],
    peers: "deny",
    host: "deny",
    addresses: "enforce",
  };
  writeFileSync(store.path, JSON.stringify({ version: 1, policies: [good] }));
  const [policy] = store.read();
  assert.deepEqual([policy?.mode, policy?.allow, policy?.isLeased, policy?.peers], ["enforce", [], true, "deny"]);
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.json(), fc.constant(JSON.stringify({ version: 1, policies: [{ ...good, for: 3 }] }))),
      (text) => {
        writeFileSync(store.path, text);
        try {
          for (const each of store.read()) assert.deepEqual(each.allow, []);
        } catch (error) {
          assert.ok(!isInternalError(error), String(error));
          assert.match(String(error), /cannot be used/);
        }
        assert.equal(readFileSync(store.path, "utf8"), text);
      },
    ),
    { numRuns: runs(50) },
  );
  chmodSync(own, 0o700);
});

/** Without any container. */
function bookOf(
  setLeased: (policies: readonly Policy[]) => void,
): ConstructorParameters<typeof PolicyLeases>[0]["book"] {
  return { setLeased, subjects: () => [], heldOf: () => undefined, policies: [] };
}

async function exitOf(child: ChildProcess): Promise<number | null> {
  return await new Promise((resolve) => child.once("exit", (code) => resolve(code)));
}
