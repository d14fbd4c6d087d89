/**
 * An attachment in a real namespace, without an engine: the rules as listed by the kernel, failing steps, which leave
 * nothing behind, and namespaces that disappear midway.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readdirSync, readlinkSync } from "node:fs";
import { after, test } from "node:test";

import { LIMITS } from "../../src/base/limits.ts";
import { Attachment } from "../../src/container/attach/attachment.ts";
import { CONTAINER_MODE, type AttachMode, type ServedNamespace } from "../../src/container/attach/attach-mode.ts";
import type { OpenEndpoint } from "../../src/container/attach/attachment-parts.ts";
import { socketAddress } from "../../src/base/model/address.ts";
import { AF_INET, SOCK_DGRAM, closeQuietly, sendTo, socket } from "../../src/kernel/libc.ts";
import { dialIn } from "../../src/container/namespace/dial.ts";
import { closeSockets } from "../../src/container/namespace/sockets.ts";
import { DOCKER_REDIRECT } from "../../src/container/capture/capture.ts";
import { aQuery } from "../support/scripted/builders.ts";
import { startUpstream } from "../support/servers/upstream.ts";
import { Attachments, VIEW, answering, answeringWith, silent } from "../support/program/attachments.ts";
import { Netns, inNetns } from "../support/rig/netns.ts";
import { waitFor } from "../support/rig/wait.ts";

const ZONE = 4711;
const attaching = new Attachments();

after(() => attaching[Symbol.dispose]());

function attachmentIn(path: string, openEndpoint: OpenEndpoint = silent): Attachment {
  return attaching.in(path, { nextZone: () => ZONE, openEndpoint });
}

async function rulesIn(netns: Netns): Promise<string> {
  const { stdout } = await netns.enter("nft", ["list", "ruleset"]);
  // The mark of our own queries is random.
  return stdout.replace(/ # progname .*/, "").replaceAll(/meta mark 0x[0-9a-f]{8} accept/g, "meta mark OWN accept");
}

/** The number of sockets of this process. */
function sockets(): number {
  const links = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  });
  return links.filter((link) => link.startsWith("socket:")).length;
}

/** The expected rules as listed by the kernel; `onTrial` is the match in front of each redirect of a query. */
function rulesText(attachment: Attachment, onTrial: string): string {
  const [{ udpPort: udp, tcpPort: tcp } = assert.fail()] = attachment.listening;
  return `table ip dns11 {
	flags owner

	chain zone {
		type filter hook output priority raw; policy accept;
		meta mark OWN accept
		ip saddr 127.0.0.11 udp sport ${udp} ct zone set ${ZONE}
		ip daddr 127.0.0.11 udp dport ${udp} ct zone set ${ZONE}
		ip saddr 127.0.0.11 tcp sport ${tcp} ct zone set ${ZONE}
		ip daddr 127.0.0.11 tcp dport ${tcp} ct zone set ${ZONE}
		${onTrial}ip daddr 127.0.0.11 udp dport 53 ct zone set ${ZONE}
		${onTrial}ip daddr 127.0.0.11 tcp dport 53 ct zone set ${ZONE}
	}

	chain query {
		type nat hook output priority -101; policy accept;
		meta mark OWN accept
		${onTrial}ip daddr 127.0.0.11 udp dport 53 dnat to 127.0.0.11:${udp}
		${onTrial}ip daddr 127.0.0.11 tcp dport 53 dnat to 127.0.0.11:${tcp}
	}

	chain reply {
		type nat hook postrouting priority -101; policy accept;
		ip saddr 127.0.0.11 udp sport ${udp} snat to :53
		ip saddr 127.0.0.11 tcp sport ${tcp} snat to :53
	}
}
`;
}

test("installs exactly these rules, and removes them when it is closed", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns.netnsPath, answering);
  await attachment.open();
  assert.equal(attachment.state.kind, "verifying");
  assert.equal(await rulesIn(netns), rulesText(attachment, ""));
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  assert.equal(await rulesIn(netns), rulesText(attachment, ""));
  await attachment.close();
  assert.equal(await rulesIn(netns), "");
});

test("after a failure only probes are redirected until one succeeds", async () => {
  await using netns = await Netns.create();
  let opened: OpenEndpoint = silent;
  const attachment = attachmentIn(netns.netnsPath, (...args) => opened(...args));
  await attachment.open();
  await attachment.verify();
  assert.equal(attachment.state.kind, "failed");
  opened = answering;
  await attachment.open();
  assert.equal(attachment.state.kind, "failed");
  assert.equal(await rulesIn(netns), rulesText(attachment, "meta mark 0x646e7332 "));
  await attachment.verify();
  assert.equal(attachment.state.kind, "attached");
  assert.equal(await rulesIn(netns), rulesText(attachment, ""));
  await attachment.close();
});

test("draining removes the query rules in one step and keeps the reply rules", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns.netnsPath);
  await attachment.open();
  const drained = attachment.drain();
  await attachment.idle();
  const rules = await rulesIn(netns);
  assert.doesNotMatch(rules, /dnat|dport 53\b/);
  assert.match(rules, /snat to :53\b/);
  await drained;
  await attachment.close();
});

test("a second instance does not attach to a namespace that another one owns", async () => {
  await using netns = await Netns.create();
  const first = attachmentIn(netns.netnsPath);
  const second = attachmentIn(netns.netnsPath);
  await first.open();
  const unchanged = await rulesIn(netns);
  const open = sockets();
  await second.open();
  assert.equal(second.state.kind === "failed" && second.state.code, "OWNED_ELSEWHERE");
  assert.equal(await rulesIn(netns), unchanged);
  await second.close();
  await waitFor("its sockets to be closed", () => (sockets() <= open ? true : undefined));
  await first.close();
});

test("a mode that changes the namespace changes and reverts nothing that another instance owns", async () => {
  await using netns = await Netns.create();
  const first = attachmentIn(netns.netnsPath);
  await first.open();
  const calls: string[] = [];
  const mode: AttachMode = {
    ...CONTAINER_MODE,
    capture: () => {
      calls.push("capture");
      return CONTAINER_MODE.capture();
    },
    undo: () => void calls.push("undo"),
  };
  const claim = { containerId: "x", sandboxKey: netns.netnsPath, pid: 0 };
  const second = new Attachment(claim, mode, VIEW, attaching.parts({ openEndpoint: answering }));
  await second.open();
  assert.equal(second.state.kind === "failed" && second.state.code, "OWNED_ELSEWHERE");
  await second.close();
  assert.deepEqual(calls, []);
  await first.close();
});

test("an unowned table is left over from a dead instance and is replaced", async () => {
  await using netns = await Netns.create();
  await netns.enter("nft", [
    "table ip dns11 { chain old { type filter hook output priority 0; udp dport 53 drop; }; }",
  ]);
  const attachment = attachmentIn(netns.netnsPath);
  await attachment.open();
  assert.equal(attachment.state.kind, "verifying");
  assert.doesNotMatch(await rulesIn(netns), /chain old/);
  await attachment.close();
});

const BROKEN_ENDPOINTS: Readonly<Record<string, OpenEndpoint>> = {
  "that does not open": () => {
    throw new Error("no listener");
  },
  "that cannot listen": (...args) => ({
    ...silent(...args),
    add: (bound) => {
      closeSockets(bound);
      throw new Error("no listener");
    },
  }),
};

for (const [which, openEndpoint] of Object.entries(BROKEN_ENDPOINTS)) {
  test(`an endpoint ${which} leaves no rule in the namespace and no descriptor here`, async () => {
    await using netns = await Netns.create();
    const open = sockets();
    const attachment = attachmentIn(netns.netnsPath, openEndpoint);
    await attachment.open();
    assert.equal(attachment.state.kind === "failed" && attachment.state.reason, "no listener");
    assert.equal(await rulesIn(netns), "");
    await attachment.close();
    await waitFor("the last descriptor to be closed", () => (sockets() <= open ? true : undefined));
  });
}

test("a namespace that is gone before it is opened fails, and one that disappears midway causes no crash", async () => {
  const gone = attachmentIn("/run/netns/d11-gone");
  await gone.open();
  assert.equal(gone.state.kind === "failed" && gone.state.code, "NAMESPACE_GONE");
  await gone.close();
  const netns = await Netns.create();
  const midway = attachmentIn(netns.netnsPath);
  await midway.open();
  await netns[Symbol.asyncDispose]();
  const verified = midway.verify();
  await midway.drain();
  await midway.close();
  await verified;
  assert.equal(midway.state.kind, "closed");
});

test("after close nothing is dialled through a descriptor number that may be reused", async () => {
  await using netns = await Netns.create();
  let dial: Parameters<OpenEndpoint>[1] = () => assert.fail();
  const attachment = attachmentIn(netns.netnsPath, (view, dialled) => {
    dial = dialled;
    return silent(view, dialled);
  });
  await attachment.open();
  const server = { from: "container", address: "127.0.0.1", port: 53 } as const;
  closeQuietly(dial(server, "udp"));
  await attachment.close();
  assert.throws(() => dial(server, "udp"), { code: "ENDED" });
});

test("a mode that awaits cannot enter another namespace by a reused descriptor number", async () => {
  await using netns = await Netns.create();
  const sites: ServedNamespace[] = [];
  const mode: AttachMode = {
    ...CONTAINER_MODE,
    onVerified: (given) => {
      sites.push(given);
      return Promise.resolve();
    },
  };
  const parts = attaching.parts({ openEndpoint: answering });
  const claim = { containerId: "x", sandboxKey: netns.netnsPath, pid: 0 };
  const attachment = new Attachment(claim, mode, VIEW, parts);
  await attachment.open();
  await attachment.verify();
  const [seen] = sites;
  assert.ok(seen !== undefined && seen.fd > 0);
  assert.equal(
    seen.within(() => 1),
    1,
  );
  assert.deepEqual(await seen.probe("127.0.0.11"), { kind: "works" });
  await attachment.close();
  assert.throws(() => seen.fd, { code: "ENDED" });
  assert.throws(() => seen.within(() => assert.fail("it is inside")), { code: "ENDED" });
  assert.deepEqual(await seen.probe("127.0.0.11"), { kind: "unknown" });
});

test("no other socket can bind our UDP port and receive our queries", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns.netnsPath, answering);
  await attachment.open();
  const program = `
    const socket = require("node:dgram").createSocket({ type: "udp4", reuseAddr: true });
    socket.on("error", (error) => { console.log(error.code); process.exit(0); });
    socket.bind(${attachment.listening[0]?.udpPort}, "127.0.0.11", () => { console.log("bound"); process.exit(0); });`;
  assert.equal((await netns.enter(process.execPath, ["-e", program])).stdout.trim(), "EADDRINUSE");
  await attachment.close();
});

test("a verification that is running when draining starts does not cut off queries in flight", async () => {
  await using netns = await Netns.create();
  let closed = 0;
  const attachment = attachmentIn(netns.netnsPath, (view, dial) => {
    const endpoint = silent(view, dial);
    return { ...endpoint, inFlight: 1, close: () => (closed++, endpoint.close()) };
  });
  await attachment.open();
  const verified = attachment.verify();
  const drained = attachment.drain();
  await verified;
  assert.equal(closed, 0);
  await drained;
  await attachment.close();
  assert.equal(closed, 1);
});

for (const host of ["127.0.0.11", "::ffff:127.0.0.11"]) {
  test(`an open TCP connection to Docker's resolver, from a client that uses ${host}, is spared`, async () => {
    await using netns = await Netns.create();
    // Instead of Docker's resolver: a server at its address and port, and a connected client.
    const program = `
      const net = require("node:net");
      const server = net.createServer().listen(53, "127.0.0.11", () => {
        const client = net.connect({ port: 53, host: "${host}" }, () => console.log(client.localPort));
      });`;
    const [command = "", ...args] = inNetns(netns.netnsPath, process.execPath, ["-e", program]);
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
    const port = String(((await once(child.stdout, "data")) as [Buffer])[0]).trim();
    const attachment = attachmentIn(netns.netnsPath);
    await attachment.open();
    const rules = await rulesIn(netns);
    assert.equal(rules.split(`tcp sport ${port} tcp dport 53 accept`).length, 3, rules);
    await attachment.close();
    child.kill("SIGKILL");
  });
}

test("without an answer it hands back, and the reason says that the query did not arrive", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns.netnsPath);
  await attachment.open();
  await attachment.verify();
  assert.equal(attachment.state.kind === "failed" && attachment.state.code, "UNVERIFIED");
  assert.equal(await rulesIn(netns), "");
  await attachment.close();
});

function failureIn({ state }: Attachment): readonly [code: string, isHeld: boolean] | string {
  return state.kind === "failed" ? [state.code, state.isHeld] : state.kind;
}

function failingWhile(isRefused: () => boolean): AttachMode {
  const capture: AttachMode["capture"] = () => {
    if (isRefused()) throw new Error("not now");
    return CONTAINER_MODE.capture();
  };
  return { ...CONTAINER_MODE, capture };
}

test("where a policy is enforced its rules stay without an answer, until none is enforced any more", async () => {
  await using netns = await Netns.create();
  let isEnforced = true;
  const attachment = attaching.in(netns.netnsPath, {
    isEnforced: () => isEnforced,
    ruleBackend: { backend: "nft" },
  });
  await attachment.open();
  await attachment.verify();
  assert.deepEqual(failureIn(attachment), ["UNVERIFIED", true]);
  assert.match(await rulesIn(netns), /\n\t\tip daddr 127\.0\.0\.11 udp dport 53 dnat to/);
  // Another try makes rules again that are gone.
  await netns.enter("nft", ["flush", "ruleset"]);
  assert.equal(await attachment.open(), true);
  await attachment.verify();
  assert.deepEqual(failureIn(attachment), ["UNVERIFIED", true]);
  assert.match(await rulesIn(netns), /\n\t\tip daddr 127\.0\.0\.11 udp dport 53 dnat to/);
  isEnforced = false;
  await attachment.verify();
  assert.deepEqual(failureIn(attachment), ["UNVERIFIED", false]);
  assert.equal(await rulesIn(netns), "");
  await attachment.close();
});

test("where a policy is enforced there is no trial, and one is over when it becomes so", async () => {
  await using netns = await Netns.create();
  let [isEnforced, isRefused] = [true, true];
  const mode = failingWhile(() => isRefused);
  const claim = { containerId: "x", sandboxKey: netns.netnsPath, pid: 0 };
  const attachment = new Attachment(claim, mode, VIEW, attaching.parts({ isEnforced: () => isEnforced }));
  const all = /\n\t\tip daddr 127\.0\.0\.11 udp dport 53 dnat to/;
  for (const wasEnforced of [true, false]) {
    [isEnforced, isRefused] = [wasEnforced, true];
    assert.equal(await attachment.open(), false);
    isRefused = false;
    assert.equal(await attachment.open(), true);
    assert.equal(all.test(await rulesIn(netns)), wasEnforced);
    isEnforced = true;
    await attachment.updateCapture();
    assert.match(await rulesIn(netns), all);
    isEnforced = false;
    await attachment.verify();
    assert.deepEqual(failureIn(attachment), ["UNVERIFIED", false]);
  }
  await attachment.close();
});

test("where a policy is enforced, a change of the rules that has failed is made before it counts as attached", async () => {
  await using netns = await Netns.create();
  let isRefused = false;
  const mode = failingWhile(() => isRefused);
  const claim = { containerId: "x", sandboxKey: netns.netnsPath, pid: 0 };
  const parts = attaching.parts({ openEndpoint: answering, isEnforced: () => true });
  const attachment = new Attachment(claim, mode, VIEW, parts);
  await attachment.open();
  await attachment.verify();
  assert.equal(failureIn(attachment), "attached");
  isRefused = true;
  await attachment.updateCapture();
  assert.deepEqual(failureIn(attachment), ["REFIT_FAILED", true]);
  await attachment.verify();
  assert.deepEqual(failureIn(attachment), ["REFIT_FAILED", true]);
  isRefused = false;
  await attachment.verify();
  assert.equal(failureIn(attachment), "attached");
  await attachment.close();
});

test("a client that fills the socket faster than it is read does not get Docker's resolver back by that", async () => {
  await using netns = await Netns.create();
  const attachment = attachmentIn(netns.netnsPath, answeringWith(Buffer.of(192, 0, 2, 1)));
  await attachment.open();
  const namespace = openSync(netns.netnsPath, "r");
  const client = attaching.runner.within(namespace, () => socket(AF_INET, SOCK_DGRAM));
  const resolver = socketAddress(Uint8Array.of(127, 0, 0, 11), 53);
  const query = aQuery({ name: "a.example" });
  // Eight of them are read in each round of the event loop, so a probe finds the socket full, or waits there for too long.
  const flood = (count: number): void => {
    for (let sent = 0; sent < count; sent++) sendTo(client, query, resolver);
  };
  flood(10_000);
  const timer = setInterval(() => flood(1_000), 1);
  await attachment.verify();
  clearInterval(timer);
  assert.equal(attachment.state.kind, "attached");
  for (const fd of [client, namespace]) closeQuietly(fd);
  await attachment.close();
});

test("redirects that come and go need no more sockets than the first time", async () => {
  await using netns = await Netns.create();
  let redirects = [DOCKER_REDIRECT];
  const mode = {
    ...CONTAINER_MODE,
    capture: () => ({ redirects, bypassInterfaces: [], guardsLoopback: false }),
  };
  const claim = { containerId: "x", sandboxKey: netns.netnsPath, pid: 0 };
  const attachment = new Attachment(claim, mode, VIEW, attaching.parts({ openEndpoint: answering }));
  await attachment.open();
  const other = { bind: "127.0.0.12", fromInside: ["10.1.2.3"], fromPods: [] };
  const ports: number[][] = [];
  const counts: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    for (redirects of [[DOCKER_REDIRECT, other], [DOCKER_REDIRECT]]) {
      await attachment.updateCapture();
      ports.push(attachment.listening.map(({ udpPort }) => udpPort));
      counts.push((await netns.enter("ss", ["-Hlntu"])).stdout.trim().split("\n").length);
    }
  }
  // Two addresses, each by UDP and TCP.
  assert.deepEqual([...new Set(counts)], [4], counts.join(" "));
  for (const [index, seen] of ports.entries()) assert.deepEqual(seen, ports[index % 2]);
  await attachment.close();
});

test("a connection to Docker's resolver from before is spared as long as ever when the clock is set back", async (context) => {
  await using netns = await Netns.create();
  const resolver = await startUpstream(netns, { address: "127.0.0.11" });
  const inside = openSync(netns.netnsPath, "r");
  const server = { address: "127.0.0.11", port: 53, from: "host" } as const;
  const connection = dialIn(attaching.runner, inside, server, "tcp", false);
  const attachment = attachmentIn(netns.netnsPath, answering);
  const spared = /tcp sport \d+ .*accept/;
  try {
    await attachment.open();
    await attachment.verify();
    assert.match(await rulesIn(netns), spared);
    const [wallMs, passedMs] = [Date.now(), performance.now()];
    context.mock.method(Date, "now", () => wallMs - 86_400_000);
    context.mock.method(performance, "now", () => passedMs + LIMITS.verifyEveryMs);
    await attachment.verify();
    assert.doesNotMatch(await rulesIn(netns), spared);
  } finally {
    context.mock.restoreAll();
    await attachment.close();
    for (const fd of [connection, inside]) closeQuietly(fd);
    await resolver[Symbol.asyncDispose]();
  }
});
