// Attacks with special files in place of files that dns11 reads, while dns11 is running. Its start with such files, and forged
// lists on each engine, are tested in test/docker/hostile-files.test.ts.

import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { check } from "../support/program/command.ts";
import type { Container } from "../support/engine/container.ts";
import { dataOf, dig } from "../support/client/dig.ts";
import { waitFor } from "../support/rig/wait.ts";
import type { Attack, Rig } from "./rig.ts";

const HUGE_BYTES = 4e9;

// After every rename dns11 inspects the container and reads its file.
async function lookedAt(rig: Rig, container: Container, name: string): Promise<void> {
  await rig.engine.docker("rename", container.id, name);
  await waitFor("the new name", async () => await rig.instance.container(name));
}

async function lease(rig: Rig): Promise<void> {
  const lessee = await rig.addAttacker({ name: "lessee" });
  const script = `echo $$ >/tmp/pid; exec ${rig.node.command("support/program/file-lease-main.js").join(" ")} /etc/resolv.conf >/tmp/report`;
  await rig.engine.docker("exec", "--detach", "lessee", "sh", "-c", script);
  await waitFor("the lease", async () =>
    (await lessee.exec("cat", ["/tmp/report"])).stdout.includes("held") ? true : undefined,
  );
  for (const name of ["lessee-2", "lessee-3"]) await lookedAt(rig, lessee, name);
  assert.deepEqual(dataOf(await dig(lessee, "lessee-3")), [lessee.address("attackers")]);
  await lessee.exec("sh", ["-c", "kill -9 $(cat /tmp/pid)"]);
}

// A pipe without a writer, a device without an end, a 4 GB file, and one that grows while it is read.
async function replace(rig: Rig): Promise<void> {
  const pipe = join(rig.engine.folder, "pipe");
  const huge = join(rig.engine.folder, "huge");
  await check("mkfifo", [pipe]);
  writeFileSync(huge, "nameserver 127.0.0.11\n");
  truncateSync(huge, HUGE_BYTES);
  const standIn = async (path: string, index: number): Promise<void> => {
    const args = [`--volume=${path}:/etc/resolv.conf:ro`, `--volume=${path}:/etc/hosts:ro`];
    const container = await rig.addAttacker({ name: `replacer${index}`, args });
    await lookedAt(rig, container, `replaced${index}`);
    assert.deepEqual(dataOf(await dig(container, `replaced${index}`)), [container.address("attackers")]);
  };
  await Promise.all([pipe, huge, "/dev/zero", "/dev/tty"].map(standIn));
  const grower = await rig.addAttacker({ name: "grower" });
  const growing = grower.exec("sh", [
    "-c",
    "i=0; while [ $i -lt 50 ]; do head -c 1000000 /dev/zero >>/etc/resolv.conf; i=$((i+1)); done",
  ]);
  for (const name of ["grower-2", "grower-3"]) await lookedAt(rig, grower, name);
  await growing;
}

export const FILES: readonly Attack[] = [
  { title: "a lease on its resolv.conf", act: lease },
  { title: "pipes, devices and endless files as resolv.conf and hosts", act: replace },
];
