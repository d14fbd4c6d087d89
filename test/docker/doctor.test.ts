/**
 * Doctor: every fault that breaks DNS is caused in a real container, and the doctor finds it; a healthy container has no
 * findings. --fix repairs what dns11 manages, and nothing else.
 */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { EXIT } from "../../cmd/process/exit-code.ts";
import { PROGRAM } from "../support/program/built.ts";
import { ControlClient } from "../../src/api/control-client.ts";
import type { Diagnosis, Report } from "../../src/doctor/problems.ts";
import type { CheckCode, Finding } from "../../src/base/model/finding.ts";
import { moveDockerRulesToNftables } from "../support/engine/docker-rules.ts";
import { run } from "../support/program/command.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { withoutOwnedTables } from "../support/program/without-owned-tables.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import { makeFolder } from "../support/rig/folder.ts";
import type { NetworkContext } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const NETWORK = "n1";
const UPSTREAM = "10.53.0.1";
const DEAD_SERVER = "10.88.0.250";
/** A firewall lets only UDP through to this server. */
const NO_TCP = "10.53.0.2";
const REFUSING = "10.53.0.3";
const OWN_ADDRESS = "10.88.0.200";
/** How many are too many is a unit test. */
const ENTRIES = 200;

let engine: Engine;
const folder = makeFolder("doctor");

before(async () => {
  // Containers of a newer engine take less processor time.
  engine = await startEngine({ suite: "forky", resolvConf: `nameserver ${UPSTREAM}\n` });
  await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.88.0.0/24" });
  await createNetwork(engine, "closed", { internal: true });
});
after(async () => {
  await engine[Symbol.asyncDispose]();
});

interface Result extends Diagnosis {
  readonly code: number;
  /** The findings of one check for a container. */
  of(name: string, code: CheckCode): readonly Finding[];
}

async function doctor(instance: Dns11 | undefined, ...args: string[]): Promise<Result> {
  return await doctorOf(engine, instance?.stateDir ?? join(folder, "no-instance"), ...args);
}

async function doctorOf(target: Engine, stateDir: string, ...args: string[]): Promise<Result> {
  const { code, stdout, stderr } = await dns11([
    "doctor",
    "--json",
    "-H",
    target.host,
    "--state-dir",
    stateDir,
    ...args,
  ]);
  assert.equal(stderr, "");
  const diagnosis = JSON.parse(stdout) as Diagnosis;
  return { ...diagnosis, code, of: (name, checkCode) => findingsOf(reportOf(diagnosis, name), checkCode) };
}

function reportOf({ machine, containers }: Diagnosis, name: string): Report {
  if (name === machine.subject) return machine;
  return containers.find(({ subject }) => subject === name) ?? assert.fail(`no report for ${name}`);
}

function findingsOf({ findings }: Report, checkCode: CheckCode): Finding[] {
  return findings.filter(({ code }) => code === checkCode);
}

/** One check has a finding with this state and a detail like this. */
function assertFinding(result: Result, name: string, code: CheckCode, state: Finding["state"], detail: RegExp): void {
  const findings = result.of(name, code);
  const text = JSON.stringify(findings, undefined, 1);
  const match = findings.find((each) => each.state === state && detail.test(each.detail));
  assert.ok(match !== undefined, `${name}, ${code}, ${state} ${detail}: ${text}`);
  if (state === "problem") assert.ok(match.remedy !== undefined, `${code} has a remedy`);
}

// Beside twenty busy programs the lock of iptables-legacy may be another's for longer than the doctor waits.
const IS_LOCKED = /^tables of iptables-legacy cannot be read, because another program changes them/;

function notOkIn({ findings }: Report): Finding[] {
  return findings.filter(({ state, detail }) => state !== "ok" && !IS_LOCKED.test(detail));
}

type Containers = Readonly<Record<string, Container>> & AsyncDisposable;

async function runMany(options: Readonly<Record<string, ContainerOptions>>): Promise<Containers> {
  const started = await Promise.all(
    Object.entries(options).map(
      async ([name, option]) => [name, await runContainer(engine, { name, networks: [NETWORK], ...option })] as const,
    ),
  );
  const remove = async (): Promise<void> => {
    await Promise.all(started.map(async ([, container]) => await container[Symbol.asyncDispose]()));
  };
  return Object.assign(Object.fromEntries(started), { [Symbol.asyncDispose]: remove });
}

async function nft(place: NetworkContext | undefined, rules: string): Promise<void> {
  const { code, stderr } = (await place?.enter("nft", ["-f", "-"], { input: rules })) ?? { code: 1, stderr: "" };
  assert.equal(code, 0, stderr);
}

// Docker 29 is not at hand: its rules, in the container and on the host, are written as it writes them.
test("rules of Docker's nftables backend are known, and what a dockerd with iptables has left that drops its packets", async () => {
  await using web = await runContainer(engine, { name: "by-nftables", networks: [NETWORK] });
  assert.deepEqual((await doctor(undefined)).of("Docker host", "forwarding"), []);
  await moveDockerRulesToNftables(web.netnsPath);
  const tables = ["ip", "ip6"].map(
    (family) => `table ${family} docker-bridges {
    chain filter-FORWARD { type filter hook forward priority filter; policy accept; }
  }`,
  );
  await nft(engine, tables.join("\n"));
  const result = await doctor(undefined);
  assertFinding(result, "by-nftables", "docker-rules", "ok", /^nftables$/);
  // The dockerd of this test uses iptables, and has set this policy.
  assertFinding(
    result,
    "Docker host",
    "forwarding",
    "warning",
    /^chain FORWARD of table ip filter .*drops by its policy what containers send/,
  );
  const remedy = result.of("Docker host", "forwarding")[0]?.remedy ?? "";
  const commands = remedy.split(": ")[1]?.split(" && ") ?? [];
  assert.ok(commands.includes("iptables -P FORWARD ACCEPT"), remedy);
  for (const command of commands) {
    const [program = "", ...args] = command.split(" ");
    assert.equal((await engine.enter(program, args)).code, 0, command);
  }
  assertFinding(await doctor(undefined), "Docker host", "forwarding", "ok", /nftables/);
  await nft(engine, "delete table ip docker-bridges; delete table ip6 docker-bridges");
});

test("a healthy container has no problems, with dns11 and without it", async () => {
  await using _ = await runContainer(engine, { name: "well", networks: [NETWORK] });
  const without = await doctor(undefined);
  assert.deepEqual([without.code, notOkIn(reportOf(without, "well"))], [0, []]);
  assertFinding(
    without,
    "Docker host",
    "dns11",
    "warning",
    /not running for this engine; containers use Docker's resolver/,
  );
  assertFinding(without, "well", "attachment", "ok", /^Docker's resolver/);
  assertFinding(without, "well", "docker-rules", "ok", /^iptables/);
  await using instance = await startDns11(engine);
  const served = await doctor(instance);
  assert.deepEqual([served.code, served.containers.flatMap(notOkIn), notOkIn(served.machine)], [0, [], []]);
  assertFinding(served, "Docker host", "dns11", "ok", /process \d+, .*ready/);
  assertFinding(served, "well", "attachment", "ok", /^dns11, since .*, verified/);
  assertFinding(served, "well", "listener", "ok", /^udp \d+, tcp \d+$/);
  assertFinding(served, "well", "upstream", "ok", /^host\(10\.53\.0\.1\): udp NXDOMAIN in .* ms, tcp NXDOMAIN/);
  const { stdout } = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir, "well"]);
  assert.match(
    stdout,
    /^NOTE {5}well: served by dns11 since \S+Z\n\nhealthy \(\d+ checks passed, --all shows them\)\n$/,
  );
  const alone = await dns11(["doctor", "-H", engine.host, "--state-dir", folder, "well"]);
  assert.match(
    alone.stdout,
    /^NOTE {5}well: not served by dns11: Docker's resolver answers, because dns11 is not running\n/,
  );
  const all = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir, "well", "--all"]);
  assert.match(
    all.stdout,
    /^NOTE .*\n\nDocker host\nSTATE +CHECK +FINDING\n[\s\S]*\nwell\nSTATE +CHECK +FINDING\nok +resolver +dns11/,
  );
  assert.match(all.stdout, /\nhealthy \(\d+ checks passed\)\n$/);
});

test("faults in a container's configuration are found: resolv.conf, servers, search list, C library and unserved networks", async () => {
  const conf = (name: string, text: string): string => {
    const path = join(engine.folder, name);
    writeFileSync(path, text);
    return `--volume=${path}:/etc/resolv.conf`;
  };
  await using containers = await runMany({
    elsewhere: { args: [conf("elsewhere", `nameserver ${DEAD_SERVER}\noptions ndots:20 fast timeout\n`)] },
    several: { args: [conf("several", `nameserver 127.0.0.11\nnameserver ${DEAD_SERVER}\n`)] },
    typo: { args: [conf("typo", "nameserver 127.0.0.11\nnameserver 10.88.0\n")] },
    silent: { args: [conf("silent", "# nothing\n")] },
    pipe: { args: ["--volume=/dev/null:/etc/resolv.conf"] },
    dotty: { args: ["--dns-search=corp.test", "--dns-search=nx.test", "--dns-option=ndots:5"] },
    swallowed: { args: ["--dns-search=ok.test"] },
    edited: {},
    dead: { dns: [DEAD_SERVER] },
    packets: { dns: [NO_TCP] },
    refused: { dns: [REFUSING] },
    looping: { dns: [OWN_ADDRESS], args: ["--ip", OWN_ADDRESS] },
    alpine: {},
    inside: { networks: ["closed"] },
    bridged: { networks: [], dns: [DEAD_SERVER, UPSTREAM] },
    hosted: { networks: ["host"] },
  });
  await using _packets = await startUpstream(engine, { address: NO_TCP });
  await using _refused = await startDnsmasq(engine, { address: REFUSING, lines: ["no-resolv", "no-hosts"] });
  await nft(
    engine,
    `table inet wall { chain in { type filter hook input priority 0; ip daddr ${NO_TCP} tcp dport 53 drop; }; }`,
  );
  const apk = "printf 'P:musl\\nA:x86_64\\nV:1.2.3-r5\\n\\n' > /lib/apk/db/installed; touch /lib/ld-musl-x86_64.so.1";
  await containers["alpine"]?.exec("sh", ["-c", `mkdir -p /lib/apk/db; ${apk}`]);
  await containers["edited"]?.exec("sh", ["-c", "echo options attempts:1 >> /etc/resolv.conf"]);
  const result = await doctor(undefined);
  assert.equal(result.code, 1);
  assertFinding(result, "edited", "resolv-conf", "warning", /nameserver 127\.0\.0\.11; the file was edited after/);
  assertFinding(
    result,
    "elsewhere",
    "resolv-conf",
    "problem",
    /nameserver 10\.88\.0\.250; 127\.0\.0\.11 is not among.*the file is a mount/,
  );
  const options = /"ndots:20" is read as ndots:15; "fast" is not a known option; "timeout" needs a number/;
  assertFinding(result, "elsewhere", "resolv-options", "warning", options);
  assertFinding(result, "several", "resolv-conf", "warning", /queries all of them at once, as musl does/);
  assertFinding(result, "typo", "resolv-conf", "problem", /invalid address 10\.88\.0;/);
  assertFinding(result, "silent", "resolv-conf", "problem", /no nameserver/);
  assertFinding(result, "pipe", "resolv-conf", "problem", /missing or unreadable/);
  assertFinding(
    result,
    "dotty",
    "search",
    "warning",
    /corp\.test nx\.test, ndots 5: .* takes up to 6 queries, the first for .*\.corp\.test$/,
  );
  assertFinding(result, "swallowed", "search", "problem", /every name below ok\.test has an address/);
  assert.deepEqual(result.of("dotty", "search").length, 1, "those domains return NXDOMAIN for unknown names");
  assertFinding(result, "dead", "upstream", "problem", /^10\.88\.0\.250: udp .*(no reply|EHOSTUNREACH)/);
  assertFinding(result, "packets", "upstream", "warning", /^10\.53\.0\.2: udp NXDOMAIN .*, tcp no reply within 3 s/);
  assertFinding(result, "refused", "upstream", "warning", /^10\.53\.0\.3: udp REFUSED .*, tcp REFUSED/);
  assertFinding(
    result,
    "looping",
    "loop",
    "problem",
    /10\.88\.0\.200 is container looping, which forwards to the same address/,
  );
  assertFinding(result, "alpine", "libc", "warning", /^musl 1\.2\.3: no TCP support before 1\.2\.4/);
  assertFinding(
    result,
    "bridged",
    "attachment",
    "ok",
    /on the default bridge \(default-network-only\): Docker has no DNS for container names there/,
  );
  assertFinding(result, "bridged", "upstream", "problem", /^10\.88\.0\.250: udp/);
  assertFinding(result, "bridged", "upstream", "ok", /^10\.53\.0\.1: udp NXDOMAIN/);
  assertFinding(result, "inside", "upstream", "ok", /^none: .*all its networks are internal$/);
  assertFinding(
    result,
    "hosted",
    "attachment",
    "ok",
    /not served by dns11 \(host-network\): it uses the host's network/,
  );
  assert.deepEqual(reportOf(result, "hosted").findings.length, 1, "the host's namespace is checked with the machine");
});

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

test("a namespace that cannot be entered is reported as not checked", async () => {
  await using lost = await runContainer(engine, { name: "lost", networks: [NETWORK] });
  const { code, stderr } = await run("nsenter", ["-t", String(engine.hostPid), "-m", "umount", "-l", lost.sandboxKey]);
  assert.equal(code, 0, stderr);
  const result = await doctor(undefined, "lost");
  assert.equal(result.code, EXIT.unchecked);
  assertFinding(result, "lost", "namespace", "unknown", /is not a network namespace|Cannot open the network namespace/);
});

/** Serves JSON answers by path on a unix socket. */
function serveJson(socket: string, answers: Readonly<Record<string, unknown>>): Server {
  return createServer((connection) => {
    connection.on("data", (request) => {
      const path = / (\/[^ ?]*)/.exec(request.toString())?.[1] ?? "";
      const body = JSON.stringify(answers[path] ?? { error: `Unknown path "${path}"` });
      const head = `connection: close\r\ncontent-length: ${Buffer.byteLength(body)}`;
      connection.end(`HTTP/1.1 ${path in answers ? 200 : 404} OK\r\n${head}\r\n\r\n${body}`);
    });
  }).listen(socket);
}

test("a dns11 that is not ready or disconnected from the engine is a warning that names what is missing", async () => {
  await using _ = await runContainer(engine, { name: "late", networks: [NETWORK] });
  const instance = await startDns11(engine);
  const status = await instance.status();
  const [sub = ""] = readdirSync(instance.stateDir);
  await instance.stop();
  // This state is too short to catch: the status of a real instance, changed to that of one that verifies the container.
  const containers = status.containers.map((each) => ({ ...each, state: "verifying" }));
  const path = join(instance.stateDir, sub, "control.sock");
  const late = serveJson(path, { "/v1/status": { ...status, isReady: false, containers } });
  const result = await doctor(instance, "late");
  late.close();
  assertFinding(result, "Docker host", "dns11", "warning", /not ready: waiting for late$/);
  assertFinding(result, "late", "attachment", "warning", /dns11 is attaching \(verifying\)/);
  const away = serveJson(path, { "/v1/status": { ...status, engine: { ...status.engine, isConnected: false } } });
  assertFinding(await doctor(instance, "late"), "Docker host", "dns11", "warning", /disconnected from the engine/);
  away.close();
  await instance[Symbol.asyncDispose]();
});

test("a dns11 that hangs and one that was killed are found, and --fix removes what it left behind", async () => {
  // A keeper would kill a hung instance.
  const instance = await startDns11(engine, { settings: { keeper: "off" } });
  try {
    instance.kill("SIGSTOP");
    const hung = await doctor(instance);
    assert.equal(hung.code, 1);
    assertFinding(
      hung,
      "Docker host",
      "dns11",
      "problem",
      /holds the lock .* but does not respond.*no response in time/,
    );
    instance.kill("SIGCONT");
    instance.kill("SIGKILL");
    await instance.exited;
    const killed = await doctor(instance);
    assertFinding(killed, "Docker host", "dns11", "warning", /not running/);
    assertFinding(killed, "Docker host", "leftovers", "warning", /stale control socket .*control\.sock$/);
    const fixed = await doctor(instance, "--fix");
    assert.match(fixed.machine.did.join("\n"), /removed .*d11-state/);
    assert.deepEqual(findingsOf(fixed.machine, "leftovers"), []);
  } finally {
    await instance[Symbol.asyncDispose]();
  }
});

test("the exit code says that a check could not run: no engine, no capability; or that there is no such container", async () => {
  const away = await dns11(["doctor", "-H", `unix://${folder}/nothing.sock`]);
  assert.equal(away.code, EXIT.unchecked);
  assert.match(
    away.stdout,
    /UNKNOWN +Docker host: Docker Engine: No engine socket at .*\n +Fix: Check that Docker is installed and running/,
  );
  const unknown = await dns11(["doctor", "-H", engine.host, "nobody"]);
  assert.deepEqual([unknown.code, unknown.stdout], [EXIT.usage, ""]);
  assert.match(unknown.stderr, /^dns11: No running container or service named "nobody"\n {2}dns11 ps lists/);
  const program = ["--", process.execPath, PROGRAM, "doctor", "-H", engine.host];
  const unprivileged = await run("setpriv", ["--bounding-set", "-net_admin", ...program]);
  assert.equal(unprivileged.code, EXIT.unchecked, unprivileged.stderr);
  assert.match(
    unprivileged.stdout,
    /UNKNOWN +Docker host: capabilities: Missing capabilities: CAP_NET_ADMIN \(to install rules there\)\n +Fix: .*--cap-add/,
  );
});

test("a kernel without owned tables is a warning, and an engine that is too old is a problem", async () => {
  const program = [process.execPath, PROGRAM, "doctor", "--json", "-H", engine.host];
  const [command = "", ...args] = [...(await withoutOwnedTables(folder)), ...program];
  const unowned = await run(command, args);
  assert.equal(unowned.code, 0, unowned.stderr);
  assert.match(
    unowned.stdout,
    /"code":"kernel",[^}]*"warning",[^}]*supports only the rule backend nft, whose rules stay when dns11/,
  );
  // The rig has no such old engine; this one gives the answers of a real engine, with an older version.
  const answers: Readonly<Record<string, unknown>> = {
    "/version": { ...((await engine.api("/version")) as object), Version: "19.03.8" },
    "/info": await engine.api("/info"),
    "/containers/json": [],
  };
  assert.match(
    await doctorOfFake(answers),
    /PROBLEM +Docker host: Docker Engine: Docker 19\.03\.8 is not supported\n +Fix: Use Docker 20\.10/,
  );
});

/** The doctor's output for an engine that gives these answers. */
async function doctorOfFake(answers: Readonly<Record<string, unknown>>): Promise<string> {
  const socket = join(folder, "fake.sock");
  const server = serveJson(socket, answers);
  const { code, stdout, stderr } = await dns11(["doctor", "-H", `unix://${socket}`]);
  server.close();
  assert.equal(code, 1, stdout + stderr);
  return stdout;
}

test("with Docker 28 and no nameserver on the host, that is one warning, of the host, if a container needs one; an invalid one is a warning", async () => {
  await using current = await startEngine({ suite: "forky", resolvConf: "search nowhere\n" });
  await createNetwork(current, NETWORK);
  await createNetwork(current, "inside", { internal: true });
  await using __ = await runContainer(current, { name: "alone", networks: ["inside"] });
  const unneeded = await doctorOf(current, join(folder, "no-instance"));
  assertFinding(unneeded, "Docker host", "host-resolv-conf", "ok", /^no nameserver, and no container needs one$/);
  await using _ = await runContainer(current, { name: "web", networks: [NETWORK] });
  const result = await doctorOf(current, join(folder, "no-instance"), "web");
  assert.deepEqual([result.code, notOkIn(reportOf(result, "web"))], [0, []]);
  assertFinding(
    result,
    "web",
    "upstream",
    "ok",
    /^none: only container names resolve; the Docker host has no nameserver$/,
  );
  assertFinding(
    result,
    "Docker host",
    "host-resolv-conf",
    "warning",
    /^no nameserver, so 1 container without --dns has no/,
  );
  assertFinding(result, "web", "docker-rules", "ok", /./);

  const file = `nameserver ${UPSTREAM}\\nnameserver 10.53.1\\n`;
  const write = ["-t", String(current.hostPid), "-m", "sh", "-c", `printf '${file}' > /etc/resolv.conf`];
  assert.equal((await run("nsenter", write)).code, 0);
  const typo = await doctorOf(current, join(folder, "no-instance"));
  assertFinding(typo, "Docker host", "host-resolv-conf", "warning", /^invalid nameserver 10\.53\.1$/);
});
