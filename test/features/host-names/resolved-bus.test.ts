// Proves what dns11 tells systemd-resolved, and what it makes of versions that lack methods, with a bus that replies
// what a test says.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { type Server, type Socket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { BusWriter, READ_BYTES_MAX, messageLength, readMessage } from "../../../src/features/host-names/bus-message.ts";
import { ResolvedBus, isRefusal } from "../../../src/features/host-names/resolved-bus.ts";
import { waitFor } from "../../support/rig/wait.ts";

const [RETURN, ERROR, SIGNAL] = [2, 3, 4];
const FIELD = { member: 3, error: 4, replySerial: 5, sender: 7, signature: 8 } as const;
const DBUS = "org.freedesktop.DBus";
const RESOLVED = "org.freedesktop.resolve1";
const UNKNOWN = "org.freedesktop.DBus.Error.UnknownMethod";
const LINK = { index: 7, server: "127.0.0.153", domains: ["docker"] };

interface Reply {
  readonly error?: string;
  readonly signature?: string;
  readonly write?: (body: BusWriter) => void;
}

/** The values of a property's variant. */
function variant(type: string, write: (body: BusWriter) => void): Reply {
  return {
    signature: "v",
    write: (w) => {
      w.signature(type);
      write(w);
    },
  };
}

const REPLIES: Readonly<Record<string, Reply>> = {
  Get: variant("a(isb)", (w) => w.structs([], () => undefined)),
  ListDelegates: { error: UNKNOWN },
  NameHasOwner: { signature: "b", write: (w) => w.boolean(true) },
};

let folder: string;
let server: Server;
let replies: Record<string, Reply>;
let called: string[];
let bus: ResolvedBus;
let connections: Set<Socket>;
let starts: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "d11-bus-"));
  replies = { ...REPLIES };
  called = [];
  connections = new Set();
  starts = 0;
  server = createServer((socket) => {
    connections.add(socket);
    socket.on("close", () => connections.delete(socket));
    let received = Buffer.alloc(0);
    let isOpen = false;
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received[0] === 0) {
        received = Buffer.alloc(0);
        socket.write("OK 00\r\n");
        return;
      }
      if (!isOpen) {
        if (received.indexOf("BEGIN\r\n") !== 0) return;
        isOpen = true;
        received = received.subarray(7);
      }
      for (;;) {
        const length = messageLength(received);
        if (length === undefined || length > received.length) return;
        const message = received.subarray(0, length);
        received = received.subarray(length);
        const { member } = readMessage(message);
        called.push(member);
        socket.write(replyBytes(message.readUInt32LE(8), replies[member] ?? {}));
      }
    });
  });
  const path = join(folder, "bus");
  await new Promise<void>((resolve) => server.listen(path, resolve));
  bus = new ResolvedBus(
    () => path,
    () => void starts++,
  );
});
afterEach(async () => {
  bus.close();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

function replyBytes(replySerial: number, { error, signature, write }: Reply): Buffer {
  const fields: Field[] = [[FIELD.replySerial, "u", replySerial]];
  if (error !== undefined) fields.push([FIELD.error, "s", error]);
  if (signature !== undefined) fields.push([FIELD.signature, "g", signature]);
  return messageBytes(error === undefined ? RETURN : ERROR, fields, write);
}

type Field = [number, string, string | number];

function messageBytes(type: number, fields: readonly Field[], write?: (body: BusWriter) => void): Buffer {
  const body = new BusWriter();
  write?.(body);
  const header = new BusWriter();
  for (const byte of [0x6c, type, 0, 1]) header.byte(byte);
  header.u32(body.bytes.length);
  header.u32(1);
  header.structs(fields, ([code, kind, value]) => {
    header.byte(code);
    header.signature(kind);
    if (typeof value === "number") header.u32(value);
    else if (kind === "g") header.signature(value);
    else header.string(value);
  });
  header.align(8);
  return Buffer.concat([header.bytes, body.bytes]);
}

// That a name has another owner, as its sender says.
function ownerSignal(sender: string, ...names: readonly [name: string, before: string, now: string]): Buffer {
  const fields: Field[] = [
    [FIELD.member, "s", "NameOwnerChanged"],
    [FIELD.sender, "s", sender],
    [FIELD.signature, "g", "sss"],
  ];
  return messageBytes(SIGNAL, fields, (w) => names.forEach((name) => w.string(name)));
}

function send(...messages: readonly Buffer[]): void {
  for (const socket of connections) socket.write(Buffer.concat(messages));
}

test("a link gets its domains first and its server last", async () => {
  await bus.setLink(LINK);
  const settings = called.filter((member) => member.startsWith("SetLink"));
  assert.deepEqual(
    [settings[0], settings[1], settings.at(-1)],
    ["SetLinkDomains", "SetLinkDefaultRoute", "SetLinkDNS"],
  );
});

test("a version before 240 is refused with what to do, and gets no server", async () => {
  replies["SetLinkDefaultRoute"] = { error: UNKNOWN };
  await assert.rejects(bus.setLink(LINK), {
    code: "HOST_RESOLVED_OLD",
    message: /older than systemd 240/,
    remedy: "Upgrade systemd, or use --host-names=capture.",
  });
  assert.ok(!called.includes("SetLinkDNS"));
});

test("a version without one of the protocols does as well", async () => {
  for (const member of ["SetLinkLLMNR", "SetLinkMulticastDNS", "SetLinkDNSOverTLS", "SetLinkDNSSEC"])
    replies[member] = { error: UNKNOWN };
  await bus.setLink(LINK);
  assert.ok(called.includes("SetLinkDNS"));
});

test("a link that it refuses is a Fault that says what to do", async () => {
  replies["SetLinkDomains"] = { error: "org.freedesktop.resolve1.LinkBusy" };
  await assert.rejects(bus.setLink(LINK), { code: "HOST_RESOLVED_REFUSED", remedy: /^Exclude links called dns11-\*/ });
});

test("domains are those of links and the configuration, in lower case and without the final dot", async () => {
  replies["Get"] = variant("a(isb)", (w) =>
    w.structs([0, 3], (index) => {
      w.u32(index);
      w.string(index === 0 ? "Corp.Test." : "docker");
      w.boolean(true);
    }),
  );
  assert.deepEqual(await bus.domains(), [
    { index: 0, domain: "corp.test" },
    { index: 3, domain: "docker" },
  ]);
});

test("another process is systemd-resolved only if the bus itself says so", async () => {
  await bus.isRunning();
  send(
    ownerSignal(":1.99", RESOLVED, "", ":1.99"),
    ownerSignal(DBUS, "org.example.other", "", ":1.99"),
    ownerSignal(DBUS, RESOLVED, ":1.7", ""),
  );
  await bus.isRunning();
  assert.equal(starts, 0);
  send(ownerSignal(DBUS, RESOLVED, "", ":1.8"));
  await bus.isRunning();
  assert.equal(starts, 1);
});

test("a message of anybody else that cannot be read ends nothing", async () => {
  await bus.isRunning();
  const big = ownerSignal(":1.99", RESOLVED, "", ":1.99");
  big[0] = 0x42;
  for (const at of [4, 12]) big.subarray(at, at + 4).reverse();
  const strange = messageBytes(SIGNAL, [[9, "x", "of an unknown type"]]);
  const long = Buffer.concat([messageBytes(SIGNAL, [[FIELD.sender, "s", ":1.99"]]), Buffer.alloc(READ_BYTES_MAX)]);
  long.writeUInt32LE(READ_BYTES_MAX, 4);
  send(big, strange, long.subarray(0, 100_000));
  send(long.subarray(100_000), big);
  await bus.isRunning();
  assert.deepEqual([connections.size, starts], [1, 0]);
});

test("a reply that is too long ends the connection", async () => {
  await bus.isRunning();
  const asked = bus.domains();
  const long = replyBytes(1, {});
  long.writeUInt32LE(READ_BYTES_MAX, 4);
  send(long);
  await assert.rejects(asked, { code: "BUS", message: /cannot be read/ });
  await waitFor("no connection", async () => (connections.size === 0 ? true : undefined));
});

test("a bus that is lost has refused nothing", async () => {
  await bus.isRunning();
  const setting = bus.setLink(LINK);
  send(Buffer.alloc(100, 0xff));
  await assert.rejects(setting, (error) => !isRefusal(error));
  replies["SetLinkDomains"] = { error: "org.freedesktop.resolve1.LinkBusy" };
  await assert.rejects(bus.setLink(LINK), isRefusal);
  replies["Get"] = { error: "org.freedesktop.DBus.Error.ServiceUnknown" };
  await assert.rejects(bus.domains(), isRefusal);
});

for (const member of ["Hello", "AddMatch"]) {
  test(`a bus that refuses ${member} keeps no connection`, async () => {
    replies[member] = { error: "org.freedesktop.DBus.Error.LimitsExceeded" };
    for (let attempt = 0; attempt < 3; attempt++) await assert.rejects(bus.isRunning(), isRefusal);
    await waitFor("no connection", async () => (connections.size === 0 ? true : undefined));
  });
}

test("nothing connects after the end", async () => {
  bus.close();
  await assert.rejects(bus.isRunning(), { code: "ENDED" });
  assert.equal(connections.size, 0);
});
