/**
 * Doctor: every fault in the configuration of a container, or of its engine, is caused in a real one, and the doctor finds it.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { EXIT } from "../../cmd/process/exit-code.ts";
import { moveDockerRulesToNftables } from "../support/engine/docker-rules.ts";
import { run } from "../support/program/command.ts";
import { runContainer } from "../support/engine/container.ts";
import { startDnsmasq } from "../support/servers/real-server.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { NETWORK, UPSTREAM, engine, doctor, reportOf, assertFinding, runMany, nft } from "./doctor/examination.ts";

const DEAD_SERVER = "10.88.0.250";
/** A firewall lets only UDP through to this server. */
const NO_TCP = "10.53.0.2";
const REFUSING = "10.53.0.3";
const OWN_ADDRESS = "10.88.0.200";

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

test("a namespace that cannot be entered is reported as not checked", async () => {
  await using lost = await runContainer(engine, { name: "lost", networks: [NETWORK] });
  const { code, stderr } = await run("nsenter", ["-t", String(engine.hostPid), "-m", "umount", "-l", lost.sandboxKey]);
  assert.equal(code, 0, stderr);
  const result = await doctor(undefined, "lost");
  assert.equal(result.code, EXIT.unchecked);
  assertFinding(result, "lost", "namespace", "unknown", /is not a network namespace|Cannot open the network namespace/);
});
