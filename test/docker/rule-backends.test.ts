/**
 * The other rule backends with a real engine: they serve as nft-owner does, are repaired when they are flushed, removed at
 * SIGTERM, and stay after SIGKILL until a cleanup or the next start of dns11.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { EXIT } from "../../cmd/process/exit-code.ts";
import type { RuleBackend } from "../../src/base/model/rule-backend.ts";
import type { Container } from "../support/engine/container.ts";
import { SYSTEM_PATH } from "../support/program/command.ts";
import { type DigReply, dataOf, dig } from "../support/client/dig.ts";
import { Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import type { Engine } from "../support/engine/engine.ts";
import { startPair } from "../support/engine/pair.ts";
import { outcomesOf, QueryLoop } from "../support/client/query-loop.ts";
import { inTime, pause, waitFor } from "../support/rig/wait.ts";

/** How long the clients run before and after the event. */
const MARGIN_MS = 500;
const BACKENDS = ["nft", "iptables-legacy"] as const;
/** Docker's resolver answers some of them, and its socket holds only a few hundred. */
const PER_SECOND = 100;
/** The TTLs show which resolver answered. */
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

async function serve(backend: RuleBackend, options: { readonly stateDir?: string } = {}): Promise<Dns11> {
  return await startDns11(engine, { ...options, settings: { "rule-backend": backend, keeper: "off" } });
}

async function cleanup({ stateDir }: { readonly stateDir: string }): Promise<string> {
  const { code, stdout, stderr } = await dns11(["cleanup", "-H", engine.host, "--state-dir", stateDir]);
  assert.equal(code, 0, stderr);
  return stdout;
}

async function kill(instance: Dns11): Promise<void> {
  instance.kill("SIGKILL");
  await inTime(instance.exited, "the end of dns11");
}

/** The rules redirect to a closed port. Over UDP not even the ICMP error arrives, because it is not in our conntrack zone. */
async function assertUnanswered(): Promise<void> {
  const replies = await Promise.all(
    ["+notcp", "+tcp"].map(async (transport) => await dig(client, "web", transport, "+time=1")),
  );
  for (const { status, raw } of replies) assert.equal(status, "", raw);
  assert.match(replies[0]?.raw ?? "", /timed out/);
}

/**
 * No query is lost while `act` runs. What is lost before, while `first` runs, and after does not count: Docker's resolver may
 * answer then, which loses some on a busy machine.
 */
async function assertNoneLost(act: () => Promise<void>, first?: () => Promise<void>): Promise<void> {
  await using fresh = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND });
  await using reused = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND / 4, sourcePort: "any" });
  await pause(MARGIN_MS);
  await first?.();
  const sinceMs = Date.now();
  await act();
  const untilMs = Date.now();
  await pause(MARGIN_MS);
  for (const loop of [fresh, reused]) {
    const during = (await loop.stop()).filter(({ atMs }) => atMs >= sinceMs && atMs <= untilMs);
    assert.deepEqual(Object.keys(outcomesOf(during)), ["NOERROR"]);
  }
}

/** Waits for a hundred more of them. */
async function localQueries(instance: Dns11): Promise<void> {
  const local = async (): Promise<number> => (await instance.container("client"))?.counters?.["local"] ?? 0;
  const already = await local();
  await waitFor("queries to reach dns11", async () => ((await local()) > already + 100 ? true : undefined));
}

/** Ends with a kill: its rules stay, and Docker's resolver does not answer. */
async function startAndKill(backend: RuleBackend, stateDir: string): Promise<void> {
  await using instance = await serve(backend, { stateDir });
  await kill(instance);
  assert.match(await rules(), OURS);
}

for (const backend of BACKENDS) {
  describe(backend, () => {
    let instance: Dns11;
    let stateDir: string;
    before(() => {
      stateDir = mkdtempSync(join(tmpdir(), "d11-rules-"));
    });
    after(async () => {
      await instance[Symbol.asyncDispose]();
      rmSync(stateDir, { recursive: true });
    });

    test("attaching loses no query", async () => {
      await assertNoneLost(async () => {
        instance = await serve(backend);
        await localQueries(instance);
      });
    });

    test("names resolve, and a warning says that rules outlive a kill", async () => {
      assert.equal((await instance.status()).ruleBackend, backend);
      const shown = await dns11(["status", "-H", engine.host, "--state-dir", instance.stateDir]);
      assert.match(shown.stdout, new RegExp(`rules +${backend} \\(they stay if dns11 is killed`));
      await instance.logs(/stay when dns11 is killed or hangs/);
      await assertAnswered(OUR_TTL);
      assert.match(await rules(), OURS);
    });

    test("rules of a running instance are neither taken over nor cleaned up", async () => {
      await using second = await serve(backend);
      const refused = await second.container("client");
      assert.equal(refused?.code, "OWNED_ELSEWHERE", JSON.stringify(refused));
      assert.equal(await second.stop(), 0);
      assert.match(await cleanup(second), /client: kept .*: a running process owns it/);
      await assertAnswered(OUR_TTL);
    });

    test("flushed rules are installed again", async () => {
      const flush =
        backend === "nft" ? ["nft", "delete", "table", "ip", "dns11"] : ["iptables-legacy", "-t", "nat", "-F"];
      const [command = "", ...args] = flush;
      await client.enter(command, args);
      const ours = async (): Promise<DigReply | undefined> => {
        const reply = await dig(client, "web");
        return reply.answer[0]?.ttl === OUR_TTL ? reply : undefined;
      };
      await waitFor("dns11 to answer again", ours);
      // It counts when a probe has shown that it helped.
      await waitFor("the repair to be counted", async () =>
        (await instance.waitFor("client", "attached")).repairs === 1 ? true : undefined,
      );
    });

    test("SIGTERM loses no query, and leaves no rules", async () => {
      await assertNoneLost(
        async () => assert.equal(await instance.stop(), 0),
        async () => await localQueries(instance),
      );
      assert.doesNotMatch(await rules(), OURS);
      await assertAnswered(DOCKERS_TTL);
    });

    test("after SIGKILL queries fail until cleanup, which prints what it removed", async () => {
      await startAndKill(backend, stateDir);
      await assertUnanswered();
      const title = backend === "nft" ? 'table ip "dns11"' : "chains DNS11-* of iptables-legacy";
      const output = await cleanup({ stateDir });
      for (const name of ["client", "web"]) assert.ok(output.includes(`${name}: removed orphaned ${title}\n`), output);
      assert.doesNotMatch(await rules(), OURS);
      await assertAnswered(DOCKERS_TTL);
    });

    test("an instance that starts after SIGKILL takes over, with this backend and with nft-owner", async () => {
      await startAndKill(backend, stateDir);
      for (const next of [backend, "nft-owner"] as const) {
        await using second = await serve(next, { stateDir });
        assert.equal((await second.status()).ruleBackend, next);
        await assertAnswered(OUR_TTL);
        if (next === backend) {
          await kill(second);
          continue;
        }
        assert.equal(await second.stop(), 0);
        assert.doesNotMatch(await rules(), OURS);
        await assertAnswered(DOCKERS_TTL);
      }
    });
  });
}

/** A command prefix with a mount namespace in which a file is empty. */
function without(path: string): string[] {
  return ["unshare", "-m", "sh", "-c", `mount --bind /dev/null ${path} && exec "$@"`, "sh"];
}

test("nft with a keeper: after SIGKILL Docker's resolver answers, and no rules are left", async () => {
  await using instance = await startDns11(engine, { settings: { "rule-backend": "nft" } });
  assert.equal((await instance.status()).ruleBackend, "nft");
  await waitFor("the keeper to watch both namespaces", async () => {
    const { keeper } = await instance.status();
    return keeper.state === "watching" && keeper.namespaces === 2 ? true : undefined;
  });
  assert.doesNotMatch(instance.log, /stay when dns11 is killed/);
  await assertAnswered(OUR_TTL);
  instance.kill("SIGKILL");
  await waitFor("the rules to be gone", async () => (OURS.test(await rules()) ? undefined : true));
  await assertAnswered(DOCKERS_TTL);
});

test("iptables-legacy has no keeper, and a warning says that rules outlive a kill", async () => {
  await using instance = await startDns11(engine, { settings: { "rule-backend": "iptables-legacy" } });
  assert.equal((await instance.status()).keeper.state, "off");
  await instance.logs(/stay when dns11 is killed or hangs/);
  assert.equal(await instance.stop(), 0);
});

test("a requested backend that is not available ends dns11, with the reason and the requirements", async () => {
  await using instance = new Dns11(engine.host, {
    settings: { "rule-backend": "iptables-legacy" },
    prefix: without("/usr/sbin/xtables-legacy-multi"),
  });
  assert.equal(await inTime(instance.exited, "dns11 to refuse"), EXIT.cannotServe);
  await instance.logs(/iptables-legacy: iptables-legacy not found/);
  await instance.logs(/iptables-legacy needs the programs iptables-legacy and nsenter/);
  await assertAnswered(DOCKERS_TTL);
});

/** In its folder, for PATH. */
const SLOW_RESTORE = `#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
while IFS= read -r line; do
  table="$table$line
"
  [ "$line" = COMMIT ] || continue
  printf %s "$table" | iptables-legacy-restore "$@" || exit
  table=
  sleep 0.1
done
`;

test("iptables-legacy leaves no socket with a closed port that asks between the changes of two tables", async () => {
  const folder = mkdtempSync(join(tmpdir(), "d11-slow-restore-"));
  writeFileSync(join(folder, "iptables-legacy-restore"), SLOW_RESTORE, { mode: 0o755 });
  try {
    await using instance = await startDns11(engine, {
      settings: { "rule-backend": "iptables-legacy" },
      prefix: ["env", `PATH=${folder}:${SYSTEM_PATH}`],
    });
    await using reused = await QueryLoop.start(client, { name: "web", perSecond: PER_SECOND, sourcePort: "any" });
    await localQueries(instance);
    assert.equal(await instance.stop(), 0);
    await pause(MARGIN_MS);
    // Docker's resolver may lose some on a busy machine.
    const outcomes = outcomesOf(await reused.stop());
    assert.equal(outcomes["refused"], undefined, JSON.stringify(outcomes));
  } finally {
    rmSync(folder, { recursive: true });
  }
  assert.doesNotMatch(await rules(), OURS);
});

test("without the CT target, iptables-legacy serves without conntrack zones and logs that", async () => {
  const { stdout } = await engine.enter("find", ["/usr/lib", "-name", "libxt_CT.so"]);
  await using instance = await startDns11(engine, {
    settings: { "rule-backend": "iptables-legacy" },
    prefix: without(stdout.trim()),
  });
  await instance.logs(/conntrack zones are not supported/);
  // A source port that was used in the last 30 s stays with Docker's resolver while its conntrack entry exists, also for the
  // probe of the first attachment.
  await instance.waitFor("client", "attached");
  await client.enter("conntrack", ["-F"]);
  await assertAnswered(OUR_TTL);
  assert.doesNotMatch(await rules(), /--zone/);
  assert.equal(await instance.stop(), 0);
});
