/**
 * A node's resolv.conf end to end: what dns11 changes in it, what it keeps, how it is restored, and that no reader sees a partial
 * file.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { stdoutOf } from "../../support/program/command.ts";
import type { KindNode } from "../../support/kind/kind-node.ts";
import {
  GATEWAY,
  type KindEnvironment,
  startKindEnvironment,
  waitForNode,
  waitForWorkingNode,
} from "../../support/kind/kind-environment.ts";
import { startPod } from "../../support/kind/pod.ts";
import { inTime, waitFor } from "../../support/rig/wait.ts";

const FILE = "/etc/resolv.conf";
const LITERAL = "192.0.2.99";

const folder = mkdtempSync(join(tmpdir(), "d11-resolv-"));
let world: KindEnvironment;

before(async () => (world = await startKindEnvironment()));
after(async () => {
  await world[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** In place, as a program in the node would. */
async function write(node: KindNode, text: string): Promise<void> {
  stdoutOf(await node.exec("sh", ["-c", `cat > ${FILE}`], { input: text }), `writing ${FILE}`);
}

async function mountOf(node: KindNode): Promise<string> {
  const text = stdoutOf(await node.exec("cat", ["/proc/self/mountinfo"]), "mountinfo");
  return text.split("\n").find((line) => line.includes(` ${FILE} `)) ?? "";
}

test("the file is written in place: the same inode, the same mount, and Docker's file is the container's (K35)", async () => {
  await using node = await world.node("in-place");
  const path = (await node.container.inspect()).ResolvConfPath;
  const [earlier, mount] = [statSync(path).ino, await mountOf(node)];
  assert.match(mount, /resolv\.conf/);
  const instance = await world.serve();
  await using _ = instance;
  const report = await waitForWorkingNode(instance, node.name);
  assert.match(report.resolvConf, /^10\.77\.0\.1, written by dns11/);
  assert.match(await node.resolvConf(), /^nameserver 10\.77\.0\.1$/m);
  assert.deepEqual([statSync(path).ino, await mountOf(node)], [earlier, mount]);
  assert.equal(await instance.stop(), 0);
  assert.deepEqual([statSync(path).ino, await mountOf(node)], [earlier, mount]);
});

test("only loopback nameservers are replaced; comments, options, order and other servers stay, three at most (K36)", async () => {
  const files = [
    [
      "# ours 127.0.0.11\nsearch a.test b.test\nnameserver 127.0.0.11\noptions ndots:0 timeout:1\n; end\n",
      `# ours 127.0.0.11\nsearch a.test b.test\nnameserver ${GATEWAY}\noptions ndots:0 timeout:1\n; end\n`,
    ],
    ["nameserver 127.0.0.11 # local", `nameserver ${GATEWAY} # local`],
    [
      "nameserver 127.0.0.11\nnameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n",
      `nameserver ${GATEWAY}\nnameserver 192.0.2.1\nnameserver 192.0.2.2\n`,
    ],
    // Any loopback address is as useless to a pod as Docker's.
    ["nameserver 127.0.0.110\noptions 127.0.0.112\n", `nameserver ${GATEWAY}\noptions 127.0.0.112\n`],
  ] as const;
  const nodes = await Promise.all(files.map(async (_, index) => await world.node(`tokens-${index}`)));
  for (const [index, node] of nodes.entries()) await write(node, files[index]?.[0] ?? "");
  await using instance = await world.serve();
  for (const [index, node] of nodes.entries()) {
    await waitForNode(instance, node.name, ({ resolvConf }) => resolvConf.includes("written by dns11"));
    assert.equal(await node.resolvConf(), files[index]?.[1]);
  }
  assert.equal(await instance.stop(), 0);
  for (const [index, node] of nodes.entries()) {
    assert.equal(await node.resolvConf(), files[index]?.[0]);
    await node[Symbol.asyncDispose]();
  }
});

test("KIND_DNS_SEARCH works as in KIND: unset keeps, empty removes, set replaces the search list (K37)", async () => {
  const lists = [
    [undefined, "search docker.example\n"],
    ["", ""],
    ["a.test b.test", "search a.test b.test\n"],
  ] as const;
  const started = lists.map(async ([search, wanted], index) => {
    const node = await world.node(`searching-${index}`, {
      args: ["--dns-search", "docker.example"],
      ...(search === undefined ? {} : { env: { KIND_DNS_SEARCH: search } }),
    });
    return { node, wanted, earlier: await node.resolvConf() };
  });
  const nodes = await Promise.all(started);
  await using instance = await world.serve();
  for (const { node, wanted } of nodes) {
    await waitForWorkingNode(instance, node.name);
    const text = await node.resolvConf();
    assert.equal(/^search.*\n/m.exec(text)?.[0] ?? "", wanted);
    assert.match(text, /^nameserver 10\.77\.0\.1$/m);
  }
  assert.equal(await instance.stop(), 0);
  for (const { node, earlier } of nodes) {
    assert.equal(await node.resolvConf(), earlier);
    await node[Symbol.asyncDispose]();
  }
});

test("at the end the file is restored, unless another program has changed it; then it is kept and reported (K38)", async () => {
  await using same = await world.node("unchanged");
  await using other = await world.node("changed");
  const earlier = await same.resolvConf();
  const instance = await world.serve();
  await using _ = instance;
  for (const { name } of [same, other]) await waitForWorkingNode(instance, name);
  const text = `${await other.resolvConf()}options edns0\n`;
  await write(other, text);
  assert.equal(await instance.stop(), 0);
  assert.equal(await same.resolvConf(), earlier);
  assert.equal(await other.resolvConf(), text);
  await instance.logs(/"changed".*not restored/);
});

test("other programs' nameservers are kept and reported, our own accepted, loopback ones replaced again (K33)", async () => {
  await using node = await world.node("rewritten");
  await using instance = await world.serve({ "kind.ip": LITERAL });
  await waitForWorkingNode(instance, node.name);
  const written = await node.resolvConf();
  assert.match(written, /^nameserver 192\.0\.2\.99$/m);

  await write(node, "nameserver 192.0.2.200\n");
  const foreign = await waitForNode(instance, node.name, ({ reasons }) => reasons.join().includes("192.0.2.200"));
  assert.equal(foreign.state, "degraded");
  assert.equal(await node.resolvConf(), "nameserver 192.0.2.200\n");

  await write(node, `nameserver ${GATEWAY}\n`);
  await waitForNode(instance, node.name, ({ captured }) => captured.includes(GATEWAY));
  await waitForWorkingNode(instance, node.name);
  await using pod = await startPod(node);
  assert.deepEqual(pod.nameservers, [GATEWAY]);
  assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);

  for (const useless of ["nameserver 127.0.0.11\noptions ndots:0\n", "nameserver ::1\n", ""]) {
    await write(node, useless);
    await waitFor("an address that pods can query", async () =>
      /^nameserver (192\.0\.2\.99|10\.77\.0\.1)$/m.test(await node.resolvConf()) ? true : undefined,
    );
  }
});

test("a file that is read-only, or not the container's, is not written; the node is served and the reason reported (K39)", async () => {
  const own = join(folder, "own-resolv.conf");
  writeFileSync(own, "nameserver 127.0.0.11\n");
  await using readOnly = await world.node("mounted-ro", { args: ["--volume", `${own}:${FILE}:ro`] });
  await using writable = await world.node("mounted-rw", { args: ["--volume", `${own}:${FILE}:rw`] });
  await using instance = await world.serve();
  for (const node of [readOnly, writable]) {
    await instance.waitFor(node.name, "attached");
    await waitForNode(instance, node.name, ({ resolvConf }) => resolvConf.startsWith("not written: another file"));
    assert.equal(await node.resolvConf(), "nameserver 127.0.0.11\n");
    await using pod = await startPod(node);
    assert.deepEqual(await world.webFrom(pod, GATEWAY), world.found);
  }
  assert.equal(await instance.stop(), 0);
  for (const node of [readOnly, writable]) assert.equal(await node.resolvConf(), "nameserver 127.0.0.11\n");
});

/** Reads as fast as possible, like a kubelet at a bad moment. Prints its start, each text without a nameserver, and the end. */
const READER = `
const fs = require("node:fs");
const [file, end] = process.argv.slice(1);
console.log("reading");
for (let reads = 0; reads < 1000 || !fs.existsSync(end); reads++) {
  const text = fs.readFileSync(file, "utf8");
  if (!/^nameserver \\S+$/m.test(text)) console.log(JSON.stringify(text));
}
console.log("read");
`;

test("a reader always finds a nameserver, however often the file is rewritten (K40)", async () => {
  await using node = await world.node("read");
  const settings = world.settings("ip: gateway");
  await using instance = await world.serveWith(settings);
  await waitForWorkingNode(instance, node.name);
  const path = `/proc/${node.container.pid}/root${FILE}`;
  const end = join(folder, "end");
  let begun = (): void => undefined;
  const hasBegun = new Promise<void>((resolve) => (begun = resolve));
  const reading = node.enter(process.execPath, ["-e", READER, path, end], { onOutput: () => begun() });
  await inTime(Promise.race([hasBegun, reading]), "the reader");
  for (let count = 0; count < 10; count++) {
    const address = count % 2 === 0 ? LITERAL : GATEWAY;
    await settings.reload(instance, `ip: ${address}`);
    await waitForNode(instance, node.name, ({ resolvConf }) => resolvConf === `${address}, written by dns11`);
  }
  writeFileSync(end, "");
  assert.equal(stdoutOf(await reading, "the reader"), "reading\nread\n");
});
