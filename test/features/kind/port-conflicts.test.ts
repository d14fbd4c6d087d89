// Proves how the rules that redirect port 53 of a node are found where there are very many, in a namespace of the kernel.

import assert from "node:assert/strict";
import { openSync, closeSync } from "node:fs";
import { after, before, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";

import { PortConflicts } from "../../../src/features/kind/node-mode.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { RouteSocket } from "../../../src/kernel/rtnetlink.ts";
import { Netns } from "../../support/rig/netns.ts";

const runner = new NamespaceRunner();
const memory = new NetlinkMemory();
let netns: Netns;
let fd = -1;

before(async () => {
  netns = await Netns.create();
  fd = openSync(netns.netnsPath, "r");
});
after(async () => {
  closeSync(fd);
  runner.close();
  await netns[Symbol.asyncDispose]();
});

async function nft(...lines: string[]): Promise<void> {
  const { code, stderr } = await netns.enter("nft", ["-f", "-"], { input: `flush ruleset\n${lines.join("\n")}\n` });
  assert.equal(code, 0, stderr);
}

test("very many rules are read in parts, while other work runs", async () => {
  const address = "192.0.2.9";
  let changes = 0;
  const conflicts = new PortConflicts(memory, () => void changes++);
  const found = (): string => runner.within(fd, () => conflicts.find([address]));
  const many = Array.from({ length: 4_000 }, (_, index) => `udp dport ${index + 1_000} counter`).join("; ");
  const redirect = "udp dport 53 dnat to 192.0.2.1:53";
  const tables = (rule: string): string => `table ip z { chain c { ${many}; }; chain d { ${rule}; }; }`;
  await nft(tables(redirect));
  assert.equal(found(), "unknown");
  // Exchanges that receive into the same memory.
  let isRead = false;
  const read = conflicts.read().then(() => (isRead = true));
  for (let turns = 0; !isRead; turns++) {
    const links = runner.within(fd, () => withRoutes((routes) => routes.links()));
    assert.deepEqual(
      links.map(({ name }) => name),
      ["lo"],
    );
    await nextTurn();
    assert.ok(turns < 100_000);
  }
  await read;
  assert.equal(changes, 1);
  assert.match(found(), /^port 53 of 192\.0\.2\.9 is redirected by chain z d: /);
  await conflicts.read();
  assert.equal(changes, 1, "nothing has changed");
  await nft(tables("counter"));
  assert.match(found(), /chain z d/, "what was found last, until all have been read again");
  await conflicts.read();
  assert.deepEqual([changes, found()], [2, "none"]);
  await conflicts.read();
  await nft();
  assert.equal(found(), "none");
});

function withRoutes<T>(use: (routes: RouteSocket) => T): T {
  const routes = new RouteSocket(memory);
  try {
    return use(routes);
  } finally {
    routes.close();
  }
}
