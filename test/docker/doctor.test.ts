/**
 * Doctor: each thing that breaks DNS is done to a real container, and the doctor says so; of a healthy one it says nothing
 * wrong. What is ours it repairs, and nothing else.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { PROGRAM } from "../support/program/built.ts";
import { ControlClient } from "../../src/api/control-client.ts";
import type { Diagnosis, Report } from "../../src/doctor/doctor.ts";
import type { CheckCode, Finding } from "../../src/base/model/finding.ts";
import { check, run } from "../support/program/command.ts";
import { type Container, type ContainerOptions, createNetwork, runContainer } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { type Dns11, dns11, startDns11 } from "../support/program/dns11.ts";
import { type Engine, startEngine } from "../support/engine/engine.ts";
import type { NetworkContext } from "../support/rig/netns.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { startUpstream } from "../support/servers/upstream.ts";

const NETWORK = "n1";
const UPSTREAM = "10.53.0.1";
const DEAD = "10.88.0.250";
/** As a firewall leaves a server: UDP alone. */
const NO_TCP = "10.53.0.2";
const UNWILLING = "10.53.0.3";
const ITSELF = "10.88.0.200";
const ENTRIES_MAX = 262_144;

let engine: Engine;
let folder: string;

before(async () => {
  engine = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\n` });
  await startUpstream(engine, { address: UPSTREAM });
  await createNetwork(engine, NETWORK, { subnet: "10.88.0.0/24" });
  await createNetwork(engine, "closed", { internal: true });
  folder = mkdtempSync(join(tmpdir(), "d11-doctor-"));
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await engine[Symbol.asyncDispose]();
});

interface Said extends Diagnosis {
  readonly code: number;
  /** A container's findings of one check. */
  of(name: string, code: CheckCode): readonly Finding[];
}

async function doctor(instance: Dns11 | undefined, ...args: string[]): Promise<Said> {
  return await doctorOf(engine, instance?.stateDir ?? join(folder, "nobody"), ...args);
}

async function doctorOf(of: Engine, stateDir: string, ...args: string[]): Promise<Said> {
  const { code, stdout, stderr } = await dns11(["doctor", "--json", "-H", of.host, "--state-dir", stateDir, ...args]);
  assert.equal(stderr, "");
  const diagnosis = JSON.parse(stdout) as Diagnosis;
  return { ...diagnosis, code, of: (name, wanted) => findingsOf(reportOf(diagnosis, name), wanted) };
}

function reportOf({ machine, containers }: Diagnosis, name: string): Report {
  if (name === machine.subject) return machine;
  return containers.find(({ subject }) => subject === name) ?? assert.fail(`nothing is told of ${name}`);
}

function findingsOf({ findings }: Report, wanted: CheckCode): Finding[] {
  return findings.filter(({ code }) => code === wanted);
}

/** The worst of one check's findings is of this state, and says this. */
function assertSays(said: Said, name: string, code: CheckCode, state: Finding["state"], detail: RegExp): void {
  const findings = said.of(name, code);
  const text = JSON.stringify(findings, undefined, 1);
  const match = findings.find((each) => each.state === state && detail.test(each.detail));
  assert.ok(match !== undefined, `${name}, ${code}, ${state} ${detail}: ${text}`);
  if (state === "problem") assert.ok(match.remedy !== undefined, `what to do about ${code}`);
}

function wrongIn({ findings }: Report): Finding[] {
  return findings.filter(({ state }) => state !== "ok");
}

type Many = Readonly<Record<string, Container>> & AsyncDisposable;

async function runMany(options: Readonly<Record<string, ContainerOptions>>): Promise<Many> {
  const made = await Promise.all(
    Object.entries(options).map(
      async ([name, option]) => [name, await runContainer(engine, { name, networks: [NETWORK], ...option })] as const,
    ),
  );
  const remove = async (): Promise<void> => {
    await Promise.all(made.map(async ([, container]) => await container[Symbol.asyncDispose]()));
  };
  return Object.assign(Object.fromEntries(made), { [Symbol.asyncDispose]: remove });
}

async function nft(place: NetworkContext | undefined, rules: string): Promise<void> {
  const { code, stderr } = (await place?.enter("nft", ["-f", "-"], { input: rules })) ?? { code: 1, stderr: "" };
  assert.equal(code, 0, stderr);
}

test("a healthy container has nothing wrong, with dns11 and without; both are said", async () => {
  await using _ = await runContainer(engine, { name: "well", networks: [NETWORK] });
  const without = await doctor(undefined);
  assert.deepEqual([without.code, wrongIn(reportOf(without, "well"))], [0, []]);
  assertSays(
    without,
    "Docker host",
    "dns11",
    "warning",
    /not running for this engine; containers use Docker's resolver/,
  );
  assertSays(without, "well", "attachment", "ok", /^Docker's resolver/);
  assertSays(without, "well", "docker-rules", "ok", /^iptables/);
  await using instance = await startDns11(engine);
  const served = await doctor(instance);
  assert.deepEqual([served.code, served.containers.flatMap(wrongIn), wrongIn(served.machine)], [0, [], []]);
  assertSays(served, "Docker host", "dns11", "ok", /process \d+, .*ready/);
  assertSays(served, "well", "attachment", "ok", /^dns11, since .*, verified/);
  assertSays(served, "well", "listener", "ok", /^udp \d+, tcp \d+$/);
  assertSays(served, "well", "upstream", "ok", /^host\(10\.53\.0\.1\): udp NXDOMAIN in .* ms, tcp NXDOMAIN/);
  const { stdout } = await dns11(["doctor", "-H", engine.host, "--state-dir", instance.stateDir, "well"]);
  assert.match(
    stdout,
    /^Docker host\nSTATE +CHECK +FINDING\n[\s\S]*\nwell\nSTATE +CHECK +FINDING\nok +resolver +dns11/,
  );
  assert.match(stdout, /\nhealthy\n$/);
});

test("what a container was given: its resolv.conf, servers, search list, C library, and networks that are not ours", async () => {
  const conf = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return `--volume=${join(folder, name)}:/etc/resolv.conf`;
  };
  await using many = await runMany({
    elsewhere: { args: [conf("elsewhere", `nameserver ${DEAD}\noptions ndots:20 fast timeout\n`)] },
    several: { args: [conf("several", `nameserver 127.0.0.11\nnameserver ${DEAD}\n`)] },
    typo: { args: [conf("typo", "nameserver 127.0.0.11\nnameserver 10.88.0\n")] },
    silent: { args: [conf("silent", "# nothing\n")] },
    pipe: { args: ["--volume=/dev/null:/etc/resolv.conf"] },
    dotty: { args: ["--dns-search=corp.test", "--dns-search=nx.test", "--dns-option=ndots:5"] },
    swallowed: { args: ["--dns-search=ok.test"] },
    edited: {},
    dead: { dns: [DEAD] },
    packets: { dns: [NO_TCP] },
    refused: { dns: [UNWILLING] },
    looping: { dns: [ITSELF], args: ["--ip", ITSELF] },
    alpine: {},
    inside: { networks: ["closed"] },
    bridged: { networks: [], dns: [DEAD, UPSTREAM] },
    hosted: { networks: ["host"] },
  });
  await using _packets = await startUpstream(engine, { address: NO_TCP });
  await using _refused = await startDnsmasq(engine, { address: UNWILLING, lines: ["no-resolv", "no-hosts"] });
  await nft(
    engine,
    `table inet wall { chain in { type filter hook input priority 0; ip daddr ${NO_TCP} tcp dport 53 drop; }; }`,
  );
  const apk = "printf 'P:musl\\nA:x86_64\\nV:1.2.3-r5\\n\\n' > /lib/apk/db/installed; touch /lib/ld-musl-x86_64.so.1";
  await many["alpine"]?.exec("sh", ["-c", `mkdir -p /lib/apk/db; ${apk}`]);
  await many["edited"]?.exec("sh", ["-c", "echo options attempts:1 >> /etc/resolv.conf"]);
  const said = await doctor(undefined);
  assert.equal(said.code, 1);
  assertSays(said, "edited", "resolv-conf", "warning", /nameserver 127\.0\.0\.11; the file was edited after/);
  assertSays(
    said,
    "elsewhere",
    "resolv-conf",
    "problem",
    /nameserver 10\.88\.0\.250; 127\.0\.0\.11 is not among.*the file is a mount/,
  );
  const options = /"ndots:20" is read as ndots:15; "fast" is not a known option; "timeout" needs a number/;
  assertSays(said, "elsewhere", "resolv-options", "warning", options);
  assertSays(said, "several", "resolv-conf", "warning", /queries all of them at once, as musl does/);
  assertSays(said, "typo", "resolv-conf", "problem", /invalid address 10\.88\.0;/);
  assertSays(said, "silent", "resolv-conf", "problem", /no nameserver/);
  assertSays(said, "pipe", "resolv-conf", "problem", /missing or unreadable/);
  assertSays(
    said,
    "dotty",
    "search",
    "warning",
    /corp\.test nx\.test, ndots 5: .* takes up to 6 queries, the first for .*\.corp\.test$/,
  );
  assertSays(said, "swallowed", "search", "problem", /every name below ok\.test has an address/);
  assert.deepEqual(said.of("dotty", "search").length, 1, "those domains deny what is not there");
  assertSays(said, "dead", "upstream", "problem", /^10\.88\.0\.250: udp .*(no reply|EHOSTUNREACH)/);
  assertSays(said, "packets", "upstream", "warning", /^10\.53\.0\.2: udp NXDOMAIN .*, tcp no reply within 3 s/);
  assertSays(said, "refused", "upstream", "warning", /^10\.53\.0\.3: udp REFUSED .*, tcp REFUSED/);
  assertSays(
    said,
    "looping",
    "loop",
    "problem",
    /10\.88\.0\.200 is container looping, which forwards to the same address/,
  );
  assertSays(said, "alpine", "libc", "warning", /^musl 1\.2\.3: no TCP support before 1\.2\.4/);
  assertSays(
    said,
    "bridged",
    "attachment",
    "ok",
    /not served by dns11 \(default-network-only\): it is on no user-defined network/,
  );
  assertSays(said, "bridged", "upstream", "problem", /^10\.88\.0\.250: udp/);
  assertSays(said, "bridged", "upstream", "ok", /^10\.53\.0\.1: udp NXDOMAIN/);
  assertSays(said, "inside", "upstream", "ok", /^none: .*all its networks are internal$/);
  assertSays(said, "hosted", "attachment", "ok", /not served by dns11 \(host-network\): it uses the host's network/);
  assert.deepEqual(reportOf(said, "hosted").findings.length, 1, "the host's namespace is the machine's");
});

test("what somebody did to a namespace: lo, rules of both backends, firewalls, port 53, connection tracking", async () => {
  await using many = await runMany({
    lo: {},
    bare: {},
    flushed: {},
    walled: {},
    older: {},
    taken: {},
    full: {},
    remembering: {},
    led: {},
    left: {},
  });
  const { lo, bare, flushed, walled, older, taken, full, remembering, led, left } = many;
  await lo?.enter("ip", ["link", "set", "lo", "down"]);
  await bare?.enter("ip", ["address", "flush", "dev", "lo"]);
  await flushed?.enter("iptables", ["-t", "nat", "-F"]);
  await nft(walled, "table inet wall { chain in { type filter hook input priority 0; policy drop; }; }");
  await older?.enter("iptables-legacy", ["-t", "mangle", "-A", "OUTPUT", "-p", "udp", "--dport", "53", "-j", "DROP"]);
  await nft(
    led,
    "table ip vpn { chain out { type nat hook output priority -150; udp dport 53 dnat to 127.0.0.1:9; }; }",
  );
  await nft(
    left,
    "table ip dns11 { chain out { type nat hook output priority -101; udp dport 53 dnat to 127.0.0.11:9; }; }",
  );
  await taken?.exec("sh", ["-c", "nc -l -p 53 >/dev/null 2>&1 &"]);
  await nft(
    remembering,
    "table ip gone { chain out { type nat hook output priority -150; udp dport 53 dnat to 127.0.0.11:9; }; }",
  );
  await dig(remembering as Container, "flushed", "+time=1");
  await nft(remembering, "delete table ip gone");
  // As long as a client keeps its socket busy.
  await remembering?.enter("conntrack", ["-U", "-p", "udp", "-d", "127.0.0.11", "-t", "600"]);
  const entries = Array.from({ length: ENTRIES_MAX + 100 }, (_, index) => {
    const [a, b, c] = [index >> 16, (index >> 8) & 0xff, index & 0xff];
    return `-I -p udp -s 10.9.${b}.${c} -d 10.8.0.${a} --sport 1000 --dport 2 -t 600`;
  });
  writeFileSync(join(folder, "entries"), `${entries.join("\n")}\n`);
  await full?.enter("conntrack", ["-R", join(folder, "entries")]);

  const said = await doctor(undefined);
  assert.equal(said.code, 1);
  assertSays(said, "lo", "loopback", "problem", /lo is down, so 127\.0\.0\.11 is unreachable/);
  assertSays(said, "bare", "loopback", "problem", /no address in 127\.0\.0\.0\/8/);
  assertSays(said, "flushed", "docker-rules", "problem", /^none: another program .* flushed them/);
  assertSays(said, "flushed", "answers", "problem", /refused/);
  assertSays(said, "walled", "foreign-rules", "problem", /chain "in" of table inet "wall" .* drops packets/);
  assertSays(said, "older", "foreign-rules", "problem", /chain "OUTPUT" of iptables-legacy table mangle drops packets/);
  assertSays(said, "older", "answers", "problem", /a rule drops the packet \(EPERM\)/);
  assertSays(said, "led", "foreign-rules", "problem", /chain "out" of table ip "vpn" .*translates addresses before/);
  assertSays(
    said,
    "left",
    "rules",
    "problem",
    /left by a killed dns11, redirects queries to a port where nothing listens/,
  );
  assertSays(said, "taken", "port-53", "warning", /listens on it over tcp/);
  assertSays(said, "taken", "answers", "ok", /"taken" resolves to 10\.88/);
  assertSays(said, "full", "conntrack", "problem", /^26\d{4} of 262144 entries: the table is full/);
  assertSays(
    said,
    "remembering",
    "conntrack-stale",
    "problem",
    /^\d entries redirect clients .* to port 9 of 127\.0\.0\.11/,
  );

  const fixed = await doctor(undefined, "--fix");
  assert.deepEqual(wrongIn(reportOf(fixed, "left")), [], "the table that nobody owned is gone");
  assert.match(fixed.machine.did.join("\n"), /left: removed orphaned table ip "dns11"/);
  assert.deepEqual(wrongIn(reportOf(fixed, "remembering")), []);
  assert.match(reportOf(fixed, "remembering").did.join("\n"), /deleted \d stale conntrack entries/);
  assert.match(reportOf(fixed, "walled").left.join("\n"), /^other rules: dns11 cannot repair this\. Change or remove/m);
  assert.match((await (walled as Container).enter("nft", ["list", "ruleset"])).stdout, /table inet wall/);
  assertSays(fixed, "flushed", "docker-rules", "problem", /^none/);
  await full?.enter("conntrack", ["-F"]);

  // The same with dns11: where it was refused, why, since when; and what of it does not matter then.
  await using instance = await startDns11(engine);
  const served = await doctor(instance);
  assertSays(served, "walled", "attachment", "problem", /^Docker's resolver, since 2.*UNVERIFIED: .*drops packets/);
  assertSays(served, "flushed", "docker-rules", "warning", /the container will have no DNS when dns11 stops/);
  assertSays(served, "flushed", "answers", "ok", /"flushed" resolves to 10\.88/);
  assertSays(served, "lo", "attachment", "problem", /UNVERIFIED/);
});

test("sockets that somebody closed under dns11 are noticed, and --fix has it attach anew", async () => {
  await using web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  await using instance = await startDns11(engine);
  const ports = (await instance.container("web"))?.ports ?? assert.fail();
  await web.enter("ss", ["-K", "-t", "-l", "sport", "=", String(ports.tcp)]);
  await web.enter("ss", ["-K", "-u", "-a", "sport", "=", String(ports.udp)]);
  const broken = await doctor(instance, "web");
  assert.equal(broken.code, 1);
  assertSays(broken, "web", "listener", "problem", /the .*tcp socket no longer exists: another program closed it/);
  assertSays(broken, "web", "answers", "problem", /refused/);
  const fixed = await doctor(instance, "web", "--fix");
  assert.deepEqual([fixed.code, wrongIn(reportOf(fixed, "web"))], [0, []]);
  assert.match(reportOf(fixed, "web").did.join("\n"), /attached again with new sockets and rules/);
  assert.deepEqual(dataOf(await dig(web, "+tcp", "web")), [web.address(NETWORK)]);
  assert.notDeepEqual((await instance.container("web"))?.ports, ports);
  const [sub = ""] = readdirSync(instance.stateDir);
  const client = new ControlClient(join(instance.stateDir, sub, "control.sock"));
  assert.deepEqual(await client.repair("web"), { name: "web", outcome: "verified" });
  await assert.rejects(client.repair("nobody"), { code: "NO_SUCH_CONTAINER" });
  await assert.rejects(client.repair(""), { code: "NO_CONTAINER" });
  // Docker's own as well: those dns11 cannot bring back, and a container that it serves does not need them now.
  for (const protocol of ["-t", "-u"]) await web.enter("ss", ["-K", protocol, "-a", "src", "127.0.0.11"]);
  const alone = await doctor(instance, "web", "--fix");
  assertSays(
    alone,
    "web",
    "docker-rules",
    "warning",
    /the fallback when dns11 stops, does not answer: connection refused/,
  );
  assertSays(alone, "web", "answers", "ok", /"web" resolves to 10\.88/);
  assert.match(
    reportOf(alone, "web").left.join("\n"),
    /^Docker rules: dns11 cannot repair this\. Run docker restart web/,
  );
});

test("rules of a lower tier that somebody deletes are missed, until dns11 looks again or --fix has it look", async () => {
  await using web = await runContainer(engine, { name: "web", networks: [NETWORK] });
  await using instance = await startDns11(engine, { args: ["--rule-backend", "iptables-legacy"] });
  // The kernel tells nobody of this one; with the tier nft dns11 would be as quick as the doctor.
  for (const table of ["nat", "raw", "mangle"]) {
    for (const verb of ["-F", "-X"])
      await check("nsenter", [`--net=${web.netnsPath}`, "iptables-legacy", "-t", table, verb]);
  }
  const missed = await doctor(instance, "web");
  assert.equal(missed.code, 1);
  assertSays(missed, "web", "rules", "problem", /dns11 serves the container, but its rules are missing/);
  const fixed = await doctor(instance, "web", "--fix");
  assertSays(fixed, "web", "rules", "ok", /^chains DNS11-\* of iptables-legacy, owned by a running process$/);
  // Somebody's own, which let queries pass.
  await nft(web, "table inet fw { chain out { type filter hook output priority 0; tcp dport 25 drop; }; }");
  const passed = await doctor(instance, "web");
  assertSays(passed, "web", "foreign-rules", "warning", /chain "out" of table inet "fw" .*get through nevertheless/);
});

test("a namespace that cannot be entered is told, and that nothing of it could be looked at", async () => {
  await using lost = await runContainer(engine, { name: "lost", networks: [NETWORK] });
  const { code, stderr } = await run("nsenter", ["-t", String(engine.hostPid), "-m", "umount", "-l", lost.sandboxKey]);
  assert.equal(code, 0, stderr);
  const said = await doctor(undefined, "lost");
  assert.equal(said.code, 2);
  assertSays(said, "lost", "namespace", "unknown", /is not a network namespace|Cannot open the network namespace/);
});

/** Answers at a unix socket, by path. */
function serveJson(socket: string, answers: Readonly<Record<string, unknown>>): Server {
  return createServer((connection) => {
    connection.on("data", (request) => {
      const path = / (\/[^ ?]*)/.exec(request.toString())?.[1] ?? "";
      const body = JSON.stringify(answers[path]);
      const head = `connection: close\r\ncontent-length: ${Buffer.byteLength(body)}`;
      connection.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n${body}`);
    });
  }).listen(socket);
}

test("a dns11 that is not ready, or without its engine, is said to be so, with what is missing", async () => {
  await using _ = await runContainer(engine, { name: "late", networks: [NETWORK] });
  const instance = await startDns11(engine);
  const status = await instance.status();
  const [sub = ""] = readdirSync(instance.stateDir);
  await instance.stop();
  // What lasts a moment, kept: the answer of a real one, as it was while it verified the container.
  const containers = status.containers.map((each) => ({ ...each, state: "verifying" }));
  const path = join(instance.stateDir, sub, "control.sock");
  const late = serveJson(path, { "/v1/status": { ...status, isReady: false, containers } });
  const said = await doctor(instance, "late");
  late.close();
  assertSays(said, "Docker host", "dns11", "warning", /not ready: waiting for late$/);
  assertSays(said, "late", "attachment", "warning", /dns11 is attaching \(verifying\)/);
  const away = serveJson(path, { "/v1/status": { ...status, engine: { ...status.engine, isConnected: false } } });
  assertSays(await doctor(instance, "late"), "Docker host", "dns11", "warning", /disconnected from the engine/);
  away.close();
  await instance[Symbol.asyncDispose]();
});

test("a dns11 that hangs, and one that was killed; --fix takes away what is left of it", async () => {
  // Its keeper would end one that hangs.
  const instance = await startDns11(engine, { args: ["--keeper", "off"] });
  try {
    instance.kill("SIGSTOP");
    const hung = await doctor(instance);
    assert.equal(hung.code, 1);
    assertSays(hung, "Docker host", "dns11", "problem", /holds the lock .* but does not respond.*no response in time/);
    instance.kill("SIGCONT");
    instance.kill("SIGKILL");
    await instance.exited;
    const killed = await doctor(instance);
    assertSays(killed, "Docker host", "dns11", "warning", /not running/);
    assertSays(killed, "Docker host", "leftovers", "warning", /stale control socket .*control\.sock$/);
    const fixed = await doctor(instance, "--fix");
    assert.match(fixed.machine.did.join("\n"), /removed .*d11-state/);
    assert.deepEqual(findingsOf(fixed.machine, "leftovers"), []);
  } finally {
    await instance[Symbol.asyncDispose]();
  }
});

test("what could not be looked at ends with 2: no engine, no such container, no capability", async () => {
  const away = await dns11(["doctor", "-H", `unix://${folder}/nothing.sock`]);
  assert.equal(away.code, 2);
  assert.match(away.stdout, /unknown +Docker Engine +No engine socket at .*Check that Docker is installed and running/);
  const nobody = await dns11(["doctor", "-H", engine.host, "nobody"]);
  assert.deepEqual([nobody.code, nobody.stdout], [2, ""]);
  assert.match(nobody.stderr, /^dns11: No running container named "nobody"\n {2}Use a container name/);
  const program = ["--", process.execPath, PROGRAM, "doctor", "-H", engine.host];
  const poor = await run("setpriv", ["--bounding-set", "-net_admin", ...program]);
  assert.equal(poor.code, 2, poor.stderr);
  assert.match(
    poor.stdout,
    /unknown +capabilities +Missing capabilities: CAP_NET_ADMIN \(to install rules there\).*--cap-add/,
  );
});

test("a kernel without owned tables is worth a warning, and an engine too old or rootless is a problem", async () => {
  // The kernel's answer to an unknown table flag, put in the place of its real one.
  const inject = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=sendto", "-e", "inject=sendto:error=EOPNOTSUPP:when=1"];
  const program = [process.execPath, PROGRAM, "doctor", "--json", "-H", engine.host];
  const unowned = await run("strace", [...inject, ...program]);
  assert.equal(unowned.code, 0, unowned.stderr);
  assert.match(
    unowned.stdout,
    /"code":"kernel",[^}]*"warning",[^}]*supports only the rule backend nft, whose rules stay when dns11/,
  );
  // What no engine of this rig can be; its answers are those of a real one, with an older version.
  const answers: Readonly<Record<string, unknown>> = {
    "/version": { ...((await engine.api("/version")) as object), Version: "19.03.8" },
    "/info": await engine.api("/info"),
    "/containers/json": [],
  };
  assert.match(
    await doctorOfFake(answers),
    /problem +Docker Engine +Docker 19\.03\.8 is not supported\. Use Docker 20\.10/,
  );
  // Nor a rootless one: dockerd says so in this word among its security options.
  const { SecurityOptions: options = [], ...info } = answers["/info"] as { SecurityOptions?: string[] };
  const rootless = { ...info, SecurityOptions: [...options, "name=rootless"] };
  const version = await engine.api("/version");
  const said = await doctorOfFake({ ...answers, "/version": version, "/info": rootless });
  assert.match(said, /problem +Docker Engine +This engine is rootless: .*Use an engine that runs as root/);
});

/** What the doctor tells people of an engine that answers so. */
async function doctorOfFake(answers: Readonly<Record<string, unknown>>): Promise<string> {
  const socket = join(folder, "fake.sock");
  const server = serveJson(socket, answers);
  const { code, stdout, stderr } = await dns11(["doctor", "-H", `unix://${socket}`]);
  server.close();
  assert.equal(code, 1, stdout + stderr);
  return stdout;
}

test("a host's resolv.conf that names what is no address", async () => {
  await using typo = await startEngine({ resolvConf: `nameserver ${UPSTREAM}\nnameserver 10.53.1\n` });
  const said = await doctorOf(typo, join(folder, "nobody"));
  assertSays(said, "Docker host", "host-resolv-conf", "warning", /^invalid nameserver 10\.53\.1$/);
});

test("Docker 28, whose host names no server: its containers have nothing wrong beside", async () => {
  await using current = await startEngine({ suite: "forky", resolvConf: "search nowhere\n" });
  await createNetwork(current, NETWORK);
  await using _ = await runContainer(current, { name: "web", networks: [NETWORK] });
  const said = await doctorOf(current, join(folder, "nobody"), "web");
  const wrong = wrongIn(reportOf(said, "web")).map(({ code, state }) => [code, state]);
  assert.deepEqual([said.code, wrong], [0, [["upstream", "warning"]]]);
  assertSays(said, "web", "upstream", "warning", /^none: only container names resolve$/);
  assertSays(said, "Docker host", "host-resolv-conf", "warning", /no nameserver/);
  assertSays(said, "web", "docker-rules", "ok", /./);
});
