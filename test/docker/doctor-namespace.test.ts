/**
 * Doctor: every fault that breaks DNS in a namespace is caused in a real container, and the doctor finds it. --fix repairs what dns11
 * manages, and nothing else.
 */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ControlClient } from "../../src/api/control-client.ts";
import { type Container, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, startDns11 } from "../support/program/dns11.ts";
import { waitFor } from "../support/rig/wait.ts";
import {
  NETWORK,
  engine,
  folder,
  doctor,
  reportOf,
  assertFinding,
  notOkIn,
  runMany,
  nft,
  type Result,
} from "./doctor/examination.ts";

/** How many are too many is a unit test. */
const ENTRIES = 200;

test("faults in a namespace are found: lo, rules of both backends, firewalls, port 53, connection tracking", async () => {
  await using containers = await runMany({
    lo: {},
    bare: {},
    flushed: {},
    walled: {},
    older: {},
    taken: {},
    used: {},
    stale: {},
    redirected: {},
    left: {},
  });
  const { lo, bare, flushed, walled, older, taken, used, stale, redirected, left } = containers;
  await lo?.enter("ip", ["link", "set", "lo", "down"]);
  await bare?.enter("ip", ["address", "flush", "dev", "lo"]);
  await flushed?.enter("iptables", ["-t", "nat", "-F"]);
  await nft(walled, "table inet wall { chain in { type filter hook input priority 0; policy drop; }; }");
  await older?.enter("iptables-legacy", ["-t", "mangle", "-A", "OUTPUT", "-p", "udp", "--dport", "53", "-j", "DROP"]);
  await nft(
    redirected,
    "table ip vpn { chain out { type nat hook output priority -150; udp dport 53 dnat to 127.0.0.1:9; }; }",
  );
  await nft(
    left,
    "table ip dns11 { chain out { type nat hook output priority -101; udp dport 53 dnat to 127.0.0.11:9; }; }",
  );
  await taken?.exec("sh", ["-c", "nc -l -p 53 >/dev/null 2>&1 &"]);
  await waitFor("a program that has taken the port", async () => {
    const listening = await taken?.enter("ss", ["-Hltn", "sport = :53"]);
    return listening?.stdout === "" ? undefined : true;
  });
  await nft(
    stale,
    "table ip gone { chain out { type nat hook output priority -150; udp dport 53 dnat to 127.0.0.11:9; }; }",
  );
  await dig(stale as Container, "flushed", "+time=1");
  await nft(stale, "delete table ip gone");
  // As if a client kept its socket in use.
  await stale?.enter("conntrack", ["-U", "-p", "udp", "-d", "127.0.0.11", "-t", "3600"]);
  const entries = Array.from(
    { length: ENTRIES },
    (_, index) => `-I -p udp -s 10.9.0.${index} -d 10.8.0.1 --sport 1000 --dport 2 -t 3600`,
  );
  writeFileSync(join(folder, "entries"), `${entries.join("\n")}\n`);
  await used?.enter("conntrack", ["-R", join(folder, "entries")]);

  // Beside twenty busy programs another one may have the lock of iptables-legacy.
  const result = await waitFor("a doctor that could read all tables", async () => {
    const each = await doctor(undefined);
    return each.of("older", "foreign-rules").length > 0 ? each : undefined;
  });
  assert.equal(result.code, 1);
  assertFinding(result, "lo", "loopback", "problem", /lo is down, so 127\.0\.0\.11 is unreachable/);
  assertFinding(result, "bare", "loopback", "problem", /no address in 127\.0\.0\.0\/8/);
  assertFinding(result, "flushed", "docker-rules", "problem", /^none: another program .* flushed them/);
  assertFinding(result, "flushed", "answers", "problem", /refused/);
  assertFinding(result, "walled", "foreign-rules", "problem", /chain "in" of table inet "wall" .* drops packets/);
  assertFinding(
    result,
    "older",
    "foreign-rules",
    "problem",
    /chain "OUTPUT" of iptables-legacy table mangle drops packets/,
  );
  assertFinding(result, "older", "answers", "problem", /a rule drops the packet \(EPERM\)/);
  assertFinding(
    result,
    "redirected",
    "foreign-rules",
    "problem",
    /chain "out" of table ip "vpn" .*translates addresses before/,
  );
  assertFinding(
    result,
    "left",
    "rules",
    "problem",
    /left by a killed dns11, redirects queries to a port where nothing listens/,
  );
  assertFinding(result, "taken", "port-53", "warning", /listens on it over tcp/);
  assertFinding(result, "taken", "answers", "ok", /"taken" resolves to 10\.88/);
  assertFinding(result, "used", "conntrack", "ok", /^2\d\d of \d{4,} entries$/);
  assertFinding(
    result,
    "stale",
    "conntrack-stale",
    "problem",
    /^\d entries redirect clients .* to port 9 of 127\.0\.0\.11/,
  );

  const fixed = await doctor(undefined, "--fix");
  assert.deepEqual(notOkIn(reportOf(fixed, "left")), [], "the orphaned table is gone");
  assert.match(fixed.machine.did.join("\n"), /left: removed orphaned table ip "dns11"/);
  assert.deepEqual(notOkIn(reportOf(fixed, "stale")), []);
  assert.match(reportOf(fixed, "stale").did.join("\n"), /deleted \d stale conntrack entries/);
  assert.match(reportOf(fixed, "walled").left.join("\n"), /^other rules: dns11 cannot repair this\. Change or remove/m);
  assert.match((await (walled as Container).enter("nft", ["list", "ruleset"])).stdout, /table inet wall/);
  assertFinding(fixed, "flushed", "docker-rules", "problem", /^none/);

  // The same with dns11: failed attachments have a reason and a time, and some faults do not matter.
  await using instance = await startDns11(engine);
  const served = await doctor(instance);
  assertFinding(
    served,
    "walled",
    "attachment",
    "problem",
    /^dns11 could not attach \(UNVERIFIED\), so Docker's resolver answers since 2.*: .*drops packets/,
  );
  assertFinding(served, "flushed", "docker-rules", "warning", /the container will have no DNS when dns11 stops/);
  assertFinding(served, "flushed", "answers", "ok", /"flushed" resolves to 10\.88/);
  assertFinding(served, "lo", "attachment", "problem", /UNVERIFIED/);
});

/** KernelAnswerMarker a fault until the doctor finds it: on a busy machine, dns11 may have mended it before. */
async function untilBroken<T>(instance: Dns11, cause: () => Promise<T>): Promise<{ broken: Result; caused: T }> {
  // It verifies once more when it attaches the kernel's program, and would mend what is wrong by then.
  await instance.waitForKernel();
  return await waitFor("a problem of web", async () => {
    const caused = await cause();
    const broken = await doctor(instance, "web");
    return broken.code === 1 ? { broken, caused } : undefined;
  });
}

test("sockets of dns11 that another program closed are noticed, and --fix attaches again", async () => {
  await using web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  await using instance = await startDns11(engine);
  const { broken, caused: ports } = await untilBroken(instance, async () => {
    const own = (await instance.container("web"))?.ports ?? assert.fail();
    await web.enter("ss", ["-K", "-t", "-l", "sport", "=", String(own.tcp)]);
    await web.enter("ss", ["-K", "-u", "-a", "sport", "=", String(own.udp)]);
    return own;
  });
  assertFinding(broken, "web", "listener", "problem", /the .*tcp socket no longer exists: another program closed it/);
  assertFinding(broken, "web", "answers", "problem", /refused/);
  const fixed = await doctor(instance, "web", "--fix");
  assert.deepEqual([fixed.code, notOkIn(reportOf(fixed, "web"))], [0, []]);
  assert.match(reportOf(fixed, "web").did.join("\n"), /attached again with new sockets and rules/);
  assert.deepEqual(dataOf(await dig(web, "+tcp", "web")), [web.address(NETWORK)]);
  assert.notDeepEqual((await instance.container("web"))?.ports, ports);
  const [sub = ""] = readdirSync(instance.stateDir);
  const client = new ControlClient(join(instance.stateDir, sub, "control.sock"));
  assert.deepEqual(await client.repair("web"), { name: "web", outcome: "verified" });
  await assert.rejects(client.repair("nobody"), { code: "NO_SUCH_CONTAINER" });
  await assert.rejects(client.repair(""), { code: "NO_CONTAINER" });
  // Docker's sockets as well: dns11 cannot restore them, and a served container does not need them now.
  for (const protocol of ["-t", "-u"]) await web.enter("ss", ["-K", protocol, "-a", "src", "127.0.0.11"]);
  const alone = await doctor(instance, "web", "--fix");
  assertFinding(
    alone,
    "web",
    "docker-rules",
    "warning",
    /the fallback when dns11 stops, does not answer: connection refused/,
  );
  assertFinding(alone, "web", "answers", "ok", /"web" resolves to 10\.88/);
  assert.match(
    reportOf(alone, "web").left.join("\n"),
    /^Docker rules: dns11 cannot repair this\. Run docker restart web/,
  );
});

test("another program's rules that let queries pass are a warning", async () => {
  await using web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  await using instance = await startDns11(engine);
  await nft(web, "table inet fw { chain out { type filter hook output priority 0; tcp dport 25 drop; }; }");
  const passed = await doctor(instance, "web");
  assertFinding(passed, "web", "foreign-rules", "warning", /chain "out" of table inet "fw" .*get through nevertheless/);
});
