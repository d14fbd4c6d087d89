// Proves that a container cannot block dns11 with what it puts in place of a file: a lease, a pipe, or endless data. With real
// files and a real lease.

import assert from "node:assert/strict";
import { constants, openSync, closeSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { tryReadContainerFile, tryReadEngineFile } from "../../../src/container/namespace/engine-host.ts";
import { ResolvConfFile } from "../../../src/container/files/resolv-conf-file.ts";
import { HostFile, readHostServers } from "../../../src/container/watch/host-file.ts";
import { openInRoot } from "../../../src/kernel/libc.ts";
import { isLeased, openRegular, readRegular } from "../../../src/kernel/regular-file.ts";
import { check } from "../../support/program/command.ts";
import { FileLease } from "../../support/program/file-lease.ts";
import { waitFor } from "../../support/rig/wait.ts";
import { MachineRoot } from "../support/machine-root.ts";

const PATH = "/etc/resolv.conf";
const TEXT = "nameserver 192.0.2.1\n";
const ID = "c".repeat(64);

test("a file under a lease is busy, and can be read once the lease is released", async () => {
  using machine = new MachineRoot({ [PATH]: TEXT });
  {
    await using _ = await FileLease.on(machine.at(PATH));
    assert.deepEqual(tryReadEngineFile(machine, PATH), { kind: "busy" });
    assert.throws(() => openInRoot(machine.root, PATH, constants.O_RDONLY), isLeased);
    const node = new ResolvConfFile((flags) => openInRoot(machine.root, PATH, flags));
    assert.equal(node.read(), undefined);
    assert.throws(() => node.assertWritable(), { code: "RESOLV_CONF_READ_ONLY" });
  }
  assert.deepEqual(tryReadEngineFile(machine, PATH), { kind: "read", text: TEXT });
});

test("a pipe in place of a file counts as absent, and is not opened", async () => {
  using machine = new MachineRoot();
  await check("mkfifo", [machine.at("/pipe")]);
  assert.deepEqual(tryReadEngineFile(machine, "/pipe"), { kind: "absent" });
  assert.throws(() => openRegular((flags) => openInRoot(machine.root, "/pipe", flags), constants.O_RDONLY));
});

test("a device is not opened", () => {
  const device = (flags: number): number => openSync("/dev/zero", flags);
  assert.throws(() => readRegular(device, 10), /not a regular file/);
});

test("a long file is read up to its last complete line within the limit", () => {
  using machine = new MachineRoot({ [PATH]: `${TEXT}${"# x\n".repeat(100_000)}` });
  const seen = tryReadEngineFile(machine, PATH);
  assert.ok(seen.kind === "read" && seen.text.length <= 64 * 1024 && seen.text.endsWith("# x\n"));
});

test("only the file that the engine created for a container is read", () => {
  const path = `/var/lib/docker/containers/${ID}/resolv.conf`;
  using machine = new MachineRoot({ [path]: TEXT, "/mounted": TEXT });
  assert.deepEqual(tryReadContainerFile(machine, path, ID), { kind: "read", text: TEXT });
  assert.deepEqual(tryReadContainerFile(machine, "/mounted", ID), { kind: "absent" });
  assert.deepEqual(tryReadContainerFile(machine, path, "d".repeat(64)), { kind: "absent" });
});

test("during a lease on the host's file its servers stay, and changes apply afterwards", async () => {
  using machine = new MachineRoot({ [PATH]: TEXT });
  const seen: string[] = [];
  const file = new HostFile({ host: () => machine, path: undefined, onChange: (now) => seen.push(...now.nameservers) });
  try {
    {
      await using _ = await FileLease.on(machine.at(PATH));
      assert.equal(readHostServers(machine).isBusy, true);
      file.reread();
      assert.deepEqual(file.now.nameservers, ["192.0.2.1"]);
    }
    writeFileSync(machine.at(PATH), "nameserver 192.0.2.2\n");
    await waitFor("the new server", () => (seen.length > 0 ? true : undefined));
    assert.deepEqual(seen, ["192.0.2.2"]);
  } finally {
    file.close();
  }
});

test("a host's file under a lease at startup has no servers until it can be read", async () => {
  using machine = new MachineRoot({ [PATH]: TEXT });
  let file: HostFile | undefined;
  try {
    {
      await using _ = await FileLease.on(machine.at(PATH));
      file = new HostFile({ host: () => machine, path: undefined, onChange: () => undefined });
      assert.equal(file.now.isBusy, true);
    }
    file.reread();
    assert.deepEqual(file.now.nameservers, ["192.0.2.1"]);
  } finally {
    file?.close();
  }
});

// A lease needs a file that no process has open.
test("openRegular() returns a descriptor of the file", () => {
  using machine = new MachineRoot({ [PATH]: TEXT });
  closeSync(openRegular((flags) => openInRoot(machine.root, PATH, flags), constants.O_RDWR));
});
