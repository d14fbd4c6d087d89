// Proves what dns11 tells systemd-resolved, and what it makes of versions that lack methods, with a bus that replies
// what a test says.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { type Server, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";

import { BusWriter, messageLength, readMessage } from "../../../../../src/container/host/resolved/bus-message.ts";
import { ResolvedBus } from "../../../../../src/container/host/resolved/resolved-bus.ts";

const [RETURN, ERROR] = [2, 3];
const FIELD = { error: 4, replySerial: 5, signature: 8 } as const;
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
};

let folder: string;
let server: Server;
let replies: Record<string, Reply>;
let called: string[];
let bus: ResolvedBus;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "d11-bus-"));
  replies = { ...REPLIES };
  called = [];
  server = createServer((socket) => {
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
    () => undefined,
  );
});
afterEach(async () => {
  bus.close();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

function replyBytes(replySerial: number, { error, signature, write }: Reply): Buffer {
  const body = new BusWriter();
  write?.(body);
  const header = new BusWriter();
  for (const byte of [0x6c, error === undefined ? RETURN : ERROR, 0, 1]) header.byte(byte);
  header.u32(body.bytes.length);
  header.u32(1);
  const fields: [number, string, string | number][] = [[FIELD.replySerial, "u", replySerial]];
  if (error !== undefined) fields.push([FIELD.error, "s", error]);
  if (signature !== undefined) fields.push([FIELD.signature, "g", signature]);
  header.structs(fields, ([code, type, value]) => {
    header.byte(code);
    header.signature(type);
    if (typeof value === "number") header.u32(value);
    else if (type === "g") header.signature(value);
    else header.string(value);
  });
  header.align(8);
  return Buffer.concat([header.bytes, body.bytes]);
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
