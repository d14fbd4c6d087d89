/**
 * Failures to create a socket to a server, before anything is sent: they must not count as failures of the server, so the
 * error has the kernel's errno.
 */
import assert from "node:assert/strict";
import { closeSync, openSync } from "node:fs";
import { after, test } from "node:test";

import { NamespaceRunner } from "../../src/container/namespace/namespace-runner.ts";
import { dialIn } from "../../src/container/namespace/dial.ts";
import { SystemFault } from "../../src/kernel/libc.ts";
import { check, run } from "../support/program/command.ts";
import { Netns } from "../support/rig/netns.ts";

const runner = new NamespaceRunner();
after(() => runner.close());

function failureOf(fd: number, address: string, type: "udp" | "tcp"): string {
  try {
    closeSync(dialIn(runner, fd, { from: "container", address, port: 53 }, type));
    return "none";
  } catch (error) {
    assert.ok(error instanceof SystemFault && error.errno > 0, String(error));
    return error.code;
  }
}

test("a namespace without a route, or without IPv6, fails with its own errno", async () => {
  await using netns = await Netns.create();
  const fd = openSync(netns.netnsPath, "r");
  try {
    for (const type of ["udp", "tcp"] as const) {
      assert.equal(failureOf(fd, "192.0.2.1", type), "ENETUNREACH");
      assert.equal(failureOf(fd, "2001:db8::1", type), "ENETUNREACH");
      await check("ip", ["-n", netns.name, "route", "add", "prohibit", "198.51.100.0/24"]);
      assert.equal(failureOf(fd, "198.51.100.1", type), "EACCES");
      await check("ip", ["-n", netns.name, "route", "del", "prohibit", "198.51.100.0/24"]);
    }
    assert.equal(failureOf(fd, "127.0.0.1", "udp"), "none");
  } finally {
    closeSync(fd);
  }
});

test("a descriptor that is not a namespace fails with its own errno", () => {
  const fd = openSync("/dev/null", "r");
  assert.equal(failureOf(fd, "127.0.0.1", "udp"), "EINVAL");
  closeSync(fd);
  assert.equal(failureOf(fd, "127.0.0.1", "udp"), "EBADF");
});

test("a process without free descriptors fails with its own errno", async () => {
  const modules = ["namespace/namespace-runner", "namespace/dial"].map((name) =>
    JSON.stringify(new URL(`../../src/container/${name}.js`, import.meta.url).href),
  );
  const program = `
    import { openSync } from "node:fs";
    import { NamespaceRunner } from ${modules[0]};
    import { dialIn } from ${modules[1]};
    const runner = new NamespaceRunner();
    const fd = openSync("/proc/self/ns/net", "r");
    try { for (;;) openSync("/dev/null", "r"); } catch {}
    try { dialIn(runner, fd, { from: "container", address: "127.0.0.1", port: 53 }, "udp"); }
    catch (error) { console.log(error.code, error.errno); }
    process.exit(0);`;
  const node = [process.execPath, "--input-type=module", "-e", program];
  const { stdout, stderr } = await run("prlimit", ["--nofile=128", ...node]);
  assert.equal(stdout.trim(), "EMFILE 24", stderr);
});
