/**
 * The policy's tables on the real kernel: containers, a machine with a bridge, and an internet, all of network namespaces. What
 * arrives there is what counts.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { LISTENER_MARKS } from "../../../src/base/model/listener-addresses.ts";
import { PolicyTable } from "../../../src/features/policy/table/policy-table.ts";
import { SYSTEM_PATH } from "../../support/program/command.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { GATEWAY, type Member, OUTSIDE, PolicedNetwork, block, bytes, policedPair } from "./policed-network.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { POLICY_LIMITS } from "../../../src/features/policy/model/limits.ts";

const KEEP_MS = 600_000;

test("a container reaches what is open for it, with its port, and nothing else", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.warmUp();
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  for (const address of [OUTSIDE.allowed, OUTSIDE.allowed6]) {
    assert.equal(await network.connect(policed, address, 443), "refused", address);
    await table.open(policed.id, [{ address: bytes(address), port: 443 }], KEEP_MS);
    assert.equal(await network.connect(policed, address, 443), "open", address);
    assert.equal(await network.connect(policed, address, 22), "refused", address);
  }
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed) }], KEEP_MS);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 22), "open");
  for (const address of [OUTSIDE.other, OUTSIDE.other6])
    assert.equal(await network.connect(policed, address, 443), "refused", address);
  const refused = table
    .refused(policed.id)
    .map(({ address, protocol, port }) => `${address.join(".")} ${protocol} ${port}`);
  for (const expected of ["192.0.2.20 6 443", "192.0.2.10 6 22"]) assert.ok(refused.includes(expected), refused.join());
  assert.equal(await network.connect(other, OUTSIDE.other, 443), "open");
  await table.remove(policed.id);
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "open");
  assert.equal(
    await network.nft("list", "map", "inet", "dns11-policy", "forward4").then((text) => text.includes("elements")),
    false,
  );
});

// As the listener's own rules do with the packets of containers.
async function markQueries({ machine }: PolicedNetwork): Promise<void> {
  const input = `table ip marking { chain first { type filter hook prerouting priority -300; ip daddr 198.51.100.1 tcp dport 53 meta mark set ${LISTENER_MARKS.known}; }; }`;
  const { code, stderr } = await machine.enter("nft", ["-f", "-"], { input });
  assert.equal(code, 0, stderr);
}

test("the machine is reached only where the policy says so", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.serve(network.machine);
  using table = await network.table({ resolvers: [bytes("198.51.100.1")] });
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  const own = [GATEWAY[4], GATEWAY[6], "198.51.100.1"];
  for (const address of own) assert.equal(await network.connect(policed, address, 443), "refused", address);
  for (const address of own) assert.equal(await network.connect(other, address, 443), "open", address);
  assert.equal(await network.connect(policed, "198.51.100.1", 53), "refused");
  await network.serve(network.machine, [53]);
  assert.equal(await network.connect(policed, "198.51.100.1", 53), "refused");
  await markQueries(network);
  assert.equal(await network.connect(policed, "198.51.100.1", 53), "open");
  assert.equal(await network.connect(policed, GATEWAY[4], 53), "refused");
  await table.apply(network.policed(policed, { reachesHost: true }), [network.linkOf(policed)]);
  for (const address of own) assert.equal(await network.connect(policed, address, 443), "open", address);
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
});

// As an engine and a cluster do it: the port 8080 of every address of the machine leads outside, and so does a service.
async function translate({ machine }: PolicedNetwork): Promise<void> {
  const input = `
    table inet translating { chain first { type nat hook prerouting priority dstnat;
      fib daddr type local meta nfproto ipv4 tcp dport 8080 dnat ip to ${OUTSIDE.other}:443;
      fib daddr type local meta nfproto ipv6 tcp dport 8080 dnat ip6 to [${OUTSIDE.other6}]:443;
      ip daddr 203.0.113.9 tcp dport 80 dnat ip to ${OUTSIDE.other}:443;
      ip6 daddr 2001:db8:9::9 tcp dport 80 dnat ip6 to [${OUTSIDE.other6}]:443;
      ip daddr 203.0.113.8 tcp dport 80 dnat ip to 198.51.100.1:443; }; }`;
  const { code, stderr } = await machine.enter("nft", ["-f", "-"], { input });
  assert.equal(code, 0, stderr);
}

test("no answer opens an address of the machine, nor a port that it publishes", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.serve(network.machine);
  await translate(network);
  const own = [GATEWAY[4], GATEWAY[6], "198.51.100.1", "2001:db8:1::1"];
  const services = ["203.0.113.9", "2001:db8:9::9", "203.0.113.8"];
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(
    policed.id,
    [...own, ...services].map((address) => ({ address: bytes(address) })),
    KEEP_MS,
  );
  for (const address of own)
    for (const port of [443, 8080]) {
      assert.equal(await network.connect(other, address, port), "open", `${address} ${port}`);
      assert.equal(await network.connect(policed, address, port), "refused", `${address} ${port}`);
    }
  // What a cluster translates was sent elsewhere.
  for (const address of services) assert.equal(await network.connect(policed, address, 80), "open", address);
  // An address that the machine gets later is its own from then on, and one that it gives up is not.
  await network.ip(network.machine, "address", "add", "203.0.113.9/32", "dev", "lo");
  assert.equal(await network.connect(policed, "203.0.113.9", 80), "refused");
  await network.ip(network.machine, "address", "delete", "203.0.113.9/32", "dev", "lo");
  assert.equal(await network.connect(policed, "203.0.113.9", 80), "open");
  const rules = own.map((address) => ({
    isAllowed: true,
    block: block(address, address.includes(":") ? 128 : 32),
    port: 8080,
    protocol: "tcp" as const,
  }));
  await table.apply(network.policed(policed, { rules }), [network.linkOf(policed)]);
  for (const address of own) {
    assert.equal(await network.connect(policed, address, 8080), "open", address);
    assert.equal(await network.connect(policed, address, 443), "refused", address);
  }
});

test("blocks of addresses are open or closed with their ports, and a denial wins", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  const rules = [
    { isAllowed: true, block: block("192.0.2.0", 24), port: 443, protocol: "tcp" as const },
    { isAllowed: false, block: block(OUTSIDE.other, 32) },
    { isAllowed: true, block: block("2001:db8::10", 127) },
  ];
  await table.apply(network.policed(policed, { rules }), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.other) }], KEEP_MS);
  const expected = [
    [OUTSIDE.allowed, 443, "open"],
    [OUTSIDE.allowed, 22, "refused"],
    [OUTSIDE.other, 443, "refused"],
    [OUTSIDE.allowed6, 22, "open"],
    [OUTSIDE.other6, 443, "refused"],
  ] as const;
  for (const [address, port, result] of expected)
    assert.equal(await network.connect(policed, address, port), result, `${address} ${port}`);
});

test("as many rules and closed networks as there may be are in force", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  const denied = Array.from({ length: POLICY_LIMITS.enforcedBlocks - 1 }, (_each, index) => ({
    isAllowed: false,
    block: block(`2001:db8:1::${index.toString(16)}`, 128),
    port: 443,
    protocol: "tcp" as const,
  }));
  const rules = [...denied, { isAllowed: true, block: block("192.0.2.0", 24) }];
  await table.apply(network.policed(policed, { rules }), [network.linkOf(policed)]);
  const closed = Array.from({ length: POLICY_LIMITS.closedNetworks }, (_each, index) => ({
    name: `n${index}`,
    bridge: undefined,
    blocks: [block(`10.${100 + (index >> 8)}.${index & 255}.0`, 24), block(`fd00:${index.toString(16)}::`, 64)],
  }));
  await table.setNetworks(closed);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  assert.equal(await network.connect(policed, OUTSIDE.other6, 443), "refused");
});

test("audit refuses nothing and records what it would", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  await table.apply(network.policed(policed, { isEnforced: false }), [network.linkOf(policed)]);
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "open");
  assert.deepEqual(
    table.refused(policed.id).map(({ address, port }) => [address.join("."), port]),
    [[OUTSIDE.other, 443]],
  );
});

test("a network is closed before its containers are known, and what dns11 answers there is not", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.serve(network.machine, [53, 443]);
  using table = await network.table({ resolvers: [bytes("198.51.100.1")] });
  const blocks = [block("10.77.0.0", 24), block("fd77::", 64)];
  await table.setNetworks([{ name: "closed", bridge: undefined, blocks }]);
  for (const address of [OUTSIDE.other, OUTSIDE.other6, GATEWAY[4]])
    assert.equal(await network.connect(other, address, 443), "refused", address);
  await markQueries(network);
  assert.equal(await network.connect(other, "198.51.100.1", 53), "open");
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  // The machine's own programs, also from its address on that network.
  const toItself = await network.machine.enter("bash", ["--norc", "-c", `head -c 2 < /dev/tcp/${GATEWAY[4]}/443`]);
  assert.equal(toItself.stdout, "ok");
  await table.setNetworks([]);
  assert.equal(await network.connect(other, OUTSIDE.other, 443), "open");
});

test("connections that are open stay when their address is closed", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  // However long the client needs until it connects.
  const open = async (): Promise<void> =>
    await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], 2_000);
  await open();
  const script = `exec 3<>/dev/tcp/${OUTSIDE.allowed}/443; head -c 2 <&3; read -r; echo again >&3 && echo sent`;
  let isClosed: (value: unknown) => void = () => undefined;
  const until = new Promise((resolve) => (isClosed = resolve));
  let isOpen = false;
  const onOutput = (): void => void (isOpen = true);
  const client = policed.netns.enter("bash", ["--norc", "-c", script], { until, onOutput });
  await waitFor("the connection", async () => {
    if (!isOpen) await open();
    return isOpen ? true : undefined;
  });
  await waitFor("the end of the address", async () =>
    (await network.connect(policed, OUTSIDE.allowed, 443)) === "refused" ? true : undefined,
  );
  const meter = await network.packets(network.outside, "out0");
  isClosed(undefined);
  const { stdout } = await client;
  assert.match(stdout, /oksent|ok.*sent/s);
  await waitFor("the data outside", () => (meter.frames().some((frame) => frame.includes("again")) ? true : undefined));
});

test("connections that are older than their policy are judged by it, and those that it only recorded", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  const folder = makeFolder("policy-table");
  const meter = await network.packets(network.outside, "out0");
  const talk = async (name: string, address: string): Promise<void> => {
    const steps = [1, 2].map(
      (step) => `until test -e ${folder}/${step}; do sleep 0.05; done; echo ${name}-${step}. >&3; echo said`,
    );
    let isOpen = false;
    const script = `exec 3<>/dev/tcp/${address}/443; head -c 2 <&3; ${steps.join("; ")}`;
    const onOutput = (text: string): void => {
      isOpen = true;
      spoken += text.split("said").length - 1;
    };
    const client = policed.netns.enter("bash", ["--norc", "-c", script], { onOutput });
    client.catch(() => undefined);
    await waitFor("the connection", () => (isOpen ? true : undefined));
  };
  const said = new Set<string>();
  let spoken = 0;
  const hears = async (...words: string[]): Promise<true> =>
    await waitFor(`${words.join()} outside`, () => {
      for (const text of meter.frames().map((bytes_) => bytes_.toString("latin1")))
        for (const [word] of text.matchAll(/(?:early|late|kept)-[12]/g)) said.add(word);
      return words.every((word) => said.has(word)) ? true : undefined;
    });
  await talk("early", OUTSIDE.other);
  await talk("kept", OUTSIDE.allowed);
  using table = await network.table();
  await table.apply(network.policed(policed, { isEnforced: false }), [network.linkOf(policed)]);
  await talk("late", OUTSIDE.other);
  writeFileSync(join(folder, "1"), "");
  await hears("early-1", "late-1", "kept-1");
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  writeFileSync(join(folder, "2"), "");
  await waitFor("all to speak again", () => (spoken === 6 ? true : undefined));
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  await hears("kept-2");
  assert.deepEqual([...said].toSorted(), ["early-1", "kept-1", "kept-2", "late-1"]);
});

// Sends a datagram, always from the same port.
async function send({ netns }: Pick<Member, "netns">, from: string, to: string, text: string): Promise<void> {
  const script = `const socket = require("node:dgram").createSocket("udp4");
    const [from, to, text] = process.argv.slice(1).map((each) => each.split(" "));
    socket.bind(Number(from[1]), from[0], () => socket.send(text[0], Number(to[1]), to[0], () => socket.close()));`;
  const { code, stderr } = await netns.enter(process.execPath, ["-e", script, from, to, text]);
  assert.equal(code, 0, stderr);
}

test("a connection of a container that is gone, or has been started again, is not that of the next one", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  const [here, there] = [`${policed.address} 7777`, `${OUTSIDE.allowed} 53`];
  const meter = await network.packets(network.outside, "out0");
  let heard = "";
  // What the machine sends after it arrives after it.
  const arrives = async (text: string): Promise<boolean> => {
    await send(policed, here, there, `container-${text}`);
    await send({ netns: network.machine }, "198.51.100.1 7777", there, `machine-${text}`);
    await waitFor("the machine's own", () => {
      heard += meter.frames().map((frame) => frame.toString("latin1"));
      return heard.includes(`machine-${text}`) ? true : undefined;
    });
    return heard.includes(`container-${text}`);
  };
  using table = await network.table();
  const apply = async (id: string, startedAt: string): Promise<void> =>
    await table.apply(network.policed(policed, { id, startedAt }), [network.linkOf(policed)]);
  const open = async (): Promise<void> => await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed) }], KEEP_MS);
  await apply(policed.id, "first");
  await open();
  assert.equal(await arrives("one"), true);
  await send({ netns: network.outside }, there, here, "answer");
  await apply(policed.id, "first");
  assert.equal(await arrives("two"), true);
  await apply(policed.id, "second");
  assert.equal(await arrives("three"), false);
  assert.equal(table.openCount(policed.id), 0);
  await open();
  assert.equal(await arrives("four"), true);
  await table.setNetworks([{ name: "agents", bridge: "br0", blocks: [] }]);
  await table.remove(policed.id);
  assert.equal(await arrives("five"), false);
  await apply("f".repeat(64), "third");
  assert.equal(await arrives("six"), false);
});

test("an address is renewed in the kernel once half of its time is over, and costs nothing before", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  const opening = [{ address: bytes(OUTSIDE.allowed), port: 443 }];
  await table.open(policed.id, opening, 3_000);
  assert.equal(table.open(policed.id, opening, 3_000), undefined);
  await waitFor("the half of its time", () => table.open(policed.id, opening, 3_000)?.then(() => true), {
    everyMs: 10,
  });
  // A longer life is a renewal, too.
  await table.open(policed.id, opening, KEEP_MS);
  const shown = await network.nft("list", "set", "inet", "dns11-policy", `port4-${policed.id.slice(0, 24)}`);
  assert.match(shown, /192\.0\.2\.10 \. tcp \. 443 timeout 10m expires 9m/);
});

test("addresses are opened while the tables are read", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  for (let each = 1; each <= 50; each++) {
    const opened = table.open(policed.id, [{ address: Buffer.of(192, 0, 2, each), port: 443 }], KEEP_MS);
    const kept = table.removeLinksBut(new Set([policed.index]));
    // Until the transaction is under way, and while it is.
    for (const wait of [setImmediate, queueMicrotask, setImmediate]) {
      table.refused(policed.id);
      await new Promise<void>((resolve) => wait(resolve));
    }
    await opened;
    await kept;
  }
  assert.equal(table.openCount(policed.id), 50);
});

test("the address that was opened first makes room for one too many", async () => {
  const { network, policed } = await policedPair();
  await using _ = network;
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  const many = Array.from({ length: 5_000 }, (_each, index) => ({
    address: Uint8Array.of(10, 9, index >> 8, index & 0xff),
    port: 443,
  }));
  for (let at = 0; at < many.length; at += 500) await table.open(policed.id, many.slice(at, at + 500), KEEP_MS);
  assert.equal(table.openCount(policed.id), 4_096);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "refused");
  const shown = await network.nft("list", "set", "inet", "dns11-policy", `port4-${policed.id.slice(0, 24)}`);
  assert.equal(shown.match(/ \. tcp \. 443 /g)?.length, 4_096);
});

test("what fails for one container opens for the others, and is open for nobody", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  using table = await network.table();
  for (const member of [policed, other]) await table.apply(network.policed(member), [network.linkOf(member)]);
  const opening = [{ address: bytes(OUTSIDE.allowed), port: 443 }];
  const removed = table.remove(policed.id);
  const [first, second] = await Promise.allSettled([
    table.open(policed.id, opening, KEEP_MS),
    table.open(other.id, opening, KEEP_MS),
  ]);
  await removed;
  assert.equal(second.status, "fulfilled");
  assert.equal(await network.connect(other, OUTSIDE.allowed, 443), "open");
  assert.equal(first.status, "rejected");
  const late = await Promise.allSettled([table.open(policed.id, opening, KEEP_MS)]);
  assert.equal(late[0].status, "rejected");
});

test("a held address sends nothing, also on open connections, until it is released or policed; the next process keeps it", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.warmUp();
  // Nothing answers what a held address sends, so a client of it waits; any other one is waited for.
  const connects = async (member: Member, seconds: number): Promise<boolean> => {
    const script = `exec 3<>/dev/tcp/${OUTSIDE.other}/443`;
    return (await member.netns.enter("timeout", [String(seconds), "bash", "--norc", "-c", script])).code === 0;
  };
  const isHeld = async (member: Member): Promise<boolean> => !(await connects(member, 1));
  const isOpen = async (member: Member): Promise<boolean> => await connects(member, 60);
  const before: PolicyTable = await network.table();
  await before.hold([bytes(policed.address), bytes(policed.address6)]);
  assert.deepEqual([await isHeld(policed), await isOpen(other)], [true, true]);
  before[Symbol.dispose]();
  using table = await waitFor("the socket's end", async () => await network.table().catch(() => undefined));
  await table.hold([bytes(other.address)], true);
  assert.deepEqual([await isHeld(policed), await isHeld(other)], [true, true]);
  await table.hold([bytes(policed.address)]);
  assert.deepEqual([await isHeld(policed), await isOpen(other)], [true, true]);
  // What is policed has its rules, and is held again when these go.
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.hold([bytes(policed.address)]);
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
  await table.remove(policed.id);
  assert.equal(await isHeld(policed), true);
  await table.hold([]);
  assert.equal(await isOpen(policed), true);
});

test("the next process adopts the tables with what is open", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  const opening = [{ address: bytes(OUTSIDE.allowed), port: 443 }];
  const before: PolicyTable = await network.table();
  assert.equal(before.isOwned, true);
  for (const member of [policed, other]) await before.apply(network.policed(member), [network.linkOf(member)]);
  await before.open(policed.id, opening, KEEP_MS);
  await assert.rejects(network.table(), /Another process enforces policies/);
  // Nobody on the machine flushes them while their process runs.
  await network.machine.enter("nft", ["flush", "ruleset"]);
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
  before[Symbol.dispose]();
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
  using table = await waitFor("the socket's end", async () => await network.table().catch(() => undefined));
  assert.deepEqual([...table.containers].toSorted(), [policed, other].map(({ id }) => id.slice(0, 24)).toSorted());
  assert.equal(table.open(policed.id, opening, KEEP_MS), undefined);
  // Its links are not known yet.
  await table.apply(network.policed(policed, { addresses: [], isComplete: false }), []);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  assert.equal(table.open(policed.id, opening, KEEP_MS), undefined);
  assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  await table.remove(other.id);
  assert.equal(await network.connect(other, OUTSIDE.other, 443), "open");
  await table.delete();
  assert.equal(await network.nft("list", "tables"), "");
});

test("tables that the kernel cannot keep for one process are made again when others flush them, with what was open", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  // As before Linux 6.9: these are nobody's own.
  for (const family of ["inet", "netdev"]) await network.nft("add", "table", family, "dns11-policy");
  let losses = 0;
  using table = await network.table({ onLost: () => losses++ });
  assert.equal(table.isOwned, false);
  const opening = [{ address: bytes(OUTSIDE.allowed), port: 443 }];
  const closing = { name: "agents", bridge: "br0", blocks: [block("10.77.0.0", 24)] };
  const apply = async (): Promise<void> => {
    for (const member of [policed, other]) await table.apply(network.policed(member), [network.linkOf(member)]);
  };
  await table.setNetworks([closing]);
  await apply();
  await table.open(policed.id, opening, KEEP_MS);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.other) }], 1);
  const flushes = [
    ["flush", "ruleset"],
    ["delete", "table", "netdev", "dns11-policy"],
    ["flush", "ruleset"],
  ] as const;
  for (const [index, command] of flushes.entries()) {
    await network.nft("add", "table", "ip", `others${index}`);
    await network.nft(...command);
    await waitFor("the loss", () => (losses === index + 1 ? true : undefined));
    // Their network is closed before they are applied again.
    if (command[0] === "flush") assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "refused");
    await apply();
    assert.equal(table.openCount(policed.id), 1);
    assert.equal(table.open(policed.id, opening, KEEP_MS), undefined);
    assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
    for (const address of [OUTSIDE.other, OUTSIDE.other6])
      assert.equal(await network.connect(policed, address, 443), "refused", address);
  }
  // Lost and not applied again: there is nothing to remove.
  await network.nft("flush", "ruleset");
  await table.setNetworks([]);
  await table.remove(other.id);
  assert.equal(await network.connect(other, OUTSIDE.other, 443), "open");
  assert.equal(losses, flushes.length + 1);
});

test("tables that are removed before this process knows them are made again", async () => {
  await using network = await PolicedNetwork.create(1);
  for (const family of ["inet", "netdev"]) await network.nft("add", "table", family, "dns11-policy");
  let opened = 0;
  let losses = 0;
  const { machine } = network;
  const within = <T>(work: () => T): T => {
    const result = network.within(machine, work);
    // It watches by then, and has not read which tables it has.
    const command = ["nft", "delete", "table", "netdev", "dns11-policy"];
    if ((opened += 1) === 3)
      execFileSync("nsenter", [`--net=${machine.netnsPath}`, ...command], {
        env: { ...process.env, PATH: SYSTEM_PATH },
      });
    return result;
  };
  using table = await network.table({ within, onLost: () => losses++ });
  assert.equal(table.isOwned, false);
  await waitFor("the loss", () => (losses === 1 ? true : undefined));
  assert.match(await network.nft("list", "tables"), /netdev dns11-policy/);
});

test("of tables that an earlier process left, one without the other is removed as well", async () => {
  await using network = await PolicedNetwork.create(1);
  const parts = { memory: network.memory, within: <T>(work: () => T): T => network.within(network.machine, work) };
  for (const family of ["inet", "netdev"]) {
    await network.nft("add", "table", family, "dns11-policy");
    assert.equal(await PolicyTable.removeLeft(parts), true, family);
    assert.equal(await network.nft("list", "tables"), "");
    assert.equal(await PolicyTable.removeLeft(parts), false);
  }
});
