/**
 * A program that speaks mDNS may reply anything, or nothing, and the local network may announce anything: what is passed on, what is
 * bounded, and what is sent to it.
 */
import assert from "node:assert/strict";
import { closeSync, constants, mkdirSync, openSync, symlinkSync } from "node:fs";
import { type Server, type Socket, createServer } from "node:net";
import { dirname, join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";

import { RCODE } from "../../../src/base/dns/rcode.ts";
import { rcodeOf } from "../../../src/base/dns/header.ts";
import { AVAHI, type Announced, type Daemon, RESOLVED } from "../../../src/features/mdns/daemons.ts";
import type { MdnsMeans } from "../../../src/features/mdns/feature.ts";
import { MDNS_LIMITS } from "../../../src/features/mdns/limits.ts";
import { type Asked, type LookedUp, Lookups, isLanName } from "../../../src/features/mdns/lookups.ts";
import { answer } from "../../../src/features/mdns/mdns.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { inTime } from "../../support/rig/wait.ts";
import { TYPE, aQuery } from "../../support/scripted/builders.ts";

const ADDRESS = Uint8Array.of(192, 168, 1, 7);

let root = -1;
let folder = "";
let asked: Asked[] = [];
const servers: Server[] = [];
const sockets = new Set<Socket>();

beforeEach(() => {
  closeAll();
  folder = makeFolder("mdns");
  root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  asked = [];
});
after(closeAll);

function closeAll(): void {
  for (const socket of sockets) socket.destroy();
  for (const server of servers.splice(0)) server.close();
  if (root !== -1) closeSync(root);
  root = -1;
}

/** A program at its path that gives each request to `onRequest`. */
async function serve({ path }: Daemon, onRequest: (request: string, socket: Socket) => void): Promise<string[]> {
  const requests: string[] = [];
  const at = join(folder, path);
  mkdirSync(dirname(at), { recursive: true });
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      requests.push(chunk.toString());
      onRequest(chunk.toString(), socket);
    });
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(at, resolve));
  return requests;
}

function lookups(means: MdnsMeans = "auto", isOfLan: (announced: Announced) => boolean = () => true): Lookups {
  return new Lookups({ root: () => root, means: () => means, isOfLan, onAsked: (each) => asked.push(each) });
}

async function find(all: Lookups, name: string, family: 4 | 6 = 4): Promise<LookedUp> {
  return await inTime(new Promise<LookedUp>((resolve) => all.find(name, family, resolve)), name);
}

/** What avahi-daemon says of a name with one family. */
function onlyIpv4(address = "192.168.1.7", link = 2): (request: string, socket: Socket) => void {
  return (request, socket) =>
    socket.write(request.includes("IPV4") ? `+ ${link} 0 p.local ${address}\n` : "-15 Timeout reached\n");
}

describe("avahi-daemon", () => {
  test("is asked for both families, once for all who wait, and a name with one of them has none of the other", async () => {
    const requests = await serve(AVAHI, onlyIpv4());
    const all = lookups();
    const found = await Promise.all([find(all, "p.local"), find(all, "p.local"), find(all, "p.local", 6)]);
    assert.deepEqual(found, [[ADDRESS], [ADDRESS], []]);
    assert.deepEqual(requests.toSorted(), ["RESOLVE-HOSTNAME-IPV4 p.local\n", "RESOLVE-HOSTNAME-IPV6 p.local\n"]);
    assert.deepEqual(asked.at(-1), { by: "avahi-daemon" });
  });

  test("that gives up knows no such name; so does one that stays silent", async () => {
    await serve(AVAHI, (request, socket) => {
      if (request.includes("gone")) socket.write("-15 Timeout reached\n");
    });
    assert.equal(await find(lookups(), "gone.local"), "absent");
    assert.equal(await find(lookups(), "silent.local"), "absent");
  });

  test("replies in pieces", async () => {
    await serve(AVAHI, (_, socket) => {
      socket.write("+ 2 0 p.local 192.1");
      setImmediate(() => socket.write("68.1.7\n+ 2 0 p.local 192.168.1.8\n"));
    });
    assert.deepEqual(await find(lookups(), "p.local"), [ADDRESS]);
  });

  for (const [what, reply] of [
    ["half an address", "+ 2 0 p.local 192.168.1\n"],
    ["no address", "+ 2 0 p.local\n"],
    ["binary bytes", "\0\xff\x01\n"],
    ["a line without an end", "+".repeat(MDNS_LIMITS.replyBytes + 1)],
    ["a number that is none", "+ 99999999999999 0 p.local 192.168.1.7\n"],
    ["an empty line", "\n"],
  ] as const) {
    test(`sends ${what}: the name fails, and the reason says so`, async () => {
      await serve(AVAHI, (_, socket) => socket.write(Buffer.from(reply, "latin1")));
      assert.equal(await find(lookups("avahi"), "p.local"), "failed");
      assert.match(JSON.stringify(asked.at(-1)), /avahi-daemon sends replies that cannot be read/);
    });
  }

  test("closes the connection: the name fails", async () => {
    await serve(AVAHI, (_, socket) => socket.destroy());
    assert.equal(await find(lookups("avahi"), "p.local"), "failed");
    assert.match(JSON.stringify(asked.at(-1)), /avahi-daemon does not answer/);
  });

  test("announces addresses that mean another machine to each: none is passed on", async () => {
    const lies = ["127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.251", "255.255.255.255", "100.100.100.200"];
    for (const lie of lies) {
      closeServers();
      await serve(AVAHI, onlyIpv4(lie));
      assert.equal(await find(lookups(), "p.local"), "absent", lie);
    }
    closeServers();
    await serve(AVAHI, (request, socket) =>
      socket.write(`+ 2 1 p.local ${request.includes("IPV6") ? "::ffff:10.0.0.1" : "10.0.0.1"}\n`),
    );
    assert.deepEqual(
      await find(
        lookups("auto", ({ address }) => address[0] !== 10),
        "p.local",
      ),
      "absent",
    );
  });

  test("is told which link an address was announced on", async () => {
    await serve(AVAHI, onlyIpv4("192.168.1.7", 9));
    assert.equal(
      await find(
        lookups("auto", ({ link }) => link !== 9),
        "p.local",
      ),
      "absent",
    );
  });

  test("has so many names at once, and more fail at once", async () => {
    await serve(AVAHI, () => undefined);
    const all = lookups();
    const found = Array.from({ length: MDNS_LIMITS.lookups + 1 }, (_, index) => find(all, `n${index}.local`));
    assert.equal(await found.at(-1), "failed");
    all.close();
    assert.equal(await found[0], "absent");
  });
});

function closeServers(): void {
  for (const server of servers.splice(0)) server.close();
}

describe("systemd-resolved", () => {
  const reply = (parameters: unknown): string => `${JSON.stringify({ parameters })}\0`;

  test("is asked by mDNS alone where there is no avahi-daemon", async () => {
    const requests = await serve(RESOLVED, (request, socket) =>
      socket.write(
        request.includes('"family":2')
          ? reply({ addresses: [{ ifindex: 3, family: 2, address: [...ADDRESS] }], name: "p.local", flags: 1 })
          : `${JSON.stringify({ error: "io.systemd.Resolve.NoSuchResourceRecord", parameters: {} })}\0`,
      ),
    );
    assert.deepEqual(await find(lookups(), "p.local"), [ADDRESS]);
    assert.deepEqual(asked.at(-1), { by: "systemd-resolved" });
    const [first = ""] = requests;
    const { method, parameters } = JSON.parse(first.slice(0, -1)) as { method: string; parameters: { flags: number } };
    assert.equal(method, "io.systemd.Resolve.ResolveHostname");
    assert.equal(parameters.flags & 0b1_1000, 0b1_1000, "mDNS by IPv4 and IPv6");
    assert.equal(parameters.flags & 0b111, 0, "neither DNS nor LLMNR");
  });

  test("without mDNS says what to set", async () => {
    await serve(RESOLVED, (_, socket) =>
      socket.write(`${JSON.stringify({ error: "io.systemd.Resolve.NoNameServers" })}\0`),
    );
    assert.equal(await find(lookups("resolved"), "p.local"), "failed");
    assert.match(JSON.stringify(asked.at(-1)), /MulticastDNS=yes/);
  });

  for (const [what, text] of [
    ["no JSON", "{\0"],
    ["a list", "[]\0"],
    ["null", "null\0"],
    ["no list of addresses", reply({ addresses: "192.168.1.7" })],
    ["nothing", "\0"],
  ] as const) {
    test(`sends ${what}: the name fails`, async () => {
      await serve(RESOLVED, (_, socket) => socket.write(text));
      assert.equal(await find(lookups("resolved"), "p.local"), "failed");
    });
  }

  test("sends addresses that are none: they are left out, and there are never too many", async () => {
    const wrong = [
      {},
      null,
      7,
      { address: [1, 2, 3] },
      { address: [1, 2, 3, 256] },
      { address: "1.2.3.4" },
      { ifindex: "x", address: [1, 2, 3, 4] },
    ];
    const many = Array.from({ length: 100 }, (_, index) => ({ ifindex: 2, address: [192, 168, 1, index] }));
    await serve(RESOLVED, (request, socket) =>
      socket.write(reply({ addresses: request.includes("many") ? many : wrong })),
    );
    assert.equal(await find(lookups("resolved"), "wrong.local"), "absent");
    const found = await find(lookups("resolved"), "many.local");
    assert.equal(found.length, MDNS_LIMITS.addresses);
  });
});

test("where neither runs the name fails, and the reason names both; a link at the path stays in the host's root", async () => {
  assert.equal(await find(lookups(), "p.local"), "failed");
  assert.match(JSON.stringify(asked.at(-1)), /avahi-daemon does not run.*systemd-resolved does not run/);
  const requests = await serve(AVAHI, onlyIpv4());
  symlinkSync("/run", join(folder, "var-run"));
  const linked: Daemon = { ...AVAHI, path: "/var-run/avahi-daemon/socket" };
  const { ask } = await import("../../../src/features/mdns/daemons.ts");
  const answered = new Promise<unknown>((resolve) => ask(linked, root, "p.local", 4, resolve));
  assert.deepEqual(await inTime(answered, "the answer"), { kind: "found", announced: [{ address: ADDRESS, link: 2 }] });
  assert.equal(requests.length, 1);
});

test("only names of machines are sent to a program, for which a line end begins another command", () => {
  for (const name of ["printer.local", "a.b.local", "my-printer_2.local", "7.local"]) assert.ok(isLanName(name), name);
  const others = [
    "local",
    ".local",
    "a b.local",
    "a\n.local",
    "a\\010b.local",
    "printer.local.",
    "a.b",
    "ä.local",
    "-a.local",
    "a..local",
    `${"a".repeat(64)}.local`,
  ];
  for (const name of others) assert.ok(!isLanName(name), JSON.stringify(name));
});

test("the responder answers addresses alone, and nothing to what is no query", () => {
  const found = { find: (_: string, __: 4 | 6, then: (result: LookedUp) => void) => then([ADDRESS]) };
  const replies: Buffer[] = [];
  const ask = (message: Buffer): Buffer | undefined => {
    replies.length = 0;
    answer(message, 512, found, (reply) => replies.push(Buffer.from(reply)));
    return replies[0];
  };
  assert.equal(rcodeOf(ask(aQuery({ name: "p.local", type: TYPE.A })) ?? Buffer.alloc(4)), RCODE.NOERROR);
  assert.ok(ask(aQuery({ name: "P.LOCAL", type: TYPE.A }))?.includes(Buffer.from(ADDRESS)) === true);
  assert.ok(ask(aQuery({ name: "p.local", type: TYPE.TXT }))?.includes(Buffer.from(ADDRESS)) === false);
  assert.equal(rcodeOf(ask(aQuery({ name: "a b.local", type: TYPE.A })) ?? Buffer.alloc(4)), RCODE.NXDOMAIN);
  const query = aQuery({ name: "p.local", type: TYPE.A });
  for (let length = 0; length < 12 + "p.local".length; length++)
    assert.equal(ask(query.subarray(0, length)), undefined, String(length));
  const reply = Buffer.from(query);
  reply[2] = 0x80;
  assert.equal(ask(reply), undefined);
  assert.equal(ask(Buffer.alloc(70_000)), undefined);
});
