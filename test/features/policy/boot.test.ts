// What is kept for the next boot: it survives writing and reading, nobody else may have written it, and it can close neither too
// much nor anything that is no network of containers.

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import {
  closedNetworksPath,
  readClosedNetworks,
  writeClosedNetworks,
  BootClosing,
} from "../../../src/features/policy/boot/closed-networks.ts";
import { codeOf, reasonOf } from "../../../src/base/lib/fault.ts";
import { readAddressBlock } from "../../../src/base/model/address.ts";
import type { ClosedNetwork } from "../../../src/features/policy/model/policy.ts";
import { POLICY_LIMITS } from "../../../src/features/policy/model/limits.ts";

const root = mkdtempSync(join(tmpdir(), "d11-boot-"));
after(() => rmSync(root, { recursive: true }));
let folders = 0;

function newFolder(): string {
  const folder = join(root, String((folders += 1)));
  mkdirSync(folder);
  return folder;
}

function network(name: string, ...blocks: string[]): ClosedNetwork {
  return { name, bridge: "br-0123456789ab", blocks: blocks.map((each) => readAddressBlock(each) ?? assert.fail(each)) };
}

const AGENTS = network("agents", "172.18.0.0/16", "fd00:1::/64");

test("what was written is read, and no network is no file", async () => {
  const folder = join(newFolder(), "new");
  assert.equal(readClosedNetworks(folder), undefined);
  await writeClosedNetworks(folder, [AGENTS]);
  assert.deepEqual(readClosedNetworks(folder), [AGENTS]);
  await writeClosedNetworks(folder, []);
  assert.equal(readClosedNetworks(folder), undefined);
  assert.ok(!existsSync(closedNetworksPath(folder)));
});

test("what may close too much, or is something else, is refused with what is wrong", () => {
  const valid = { name: "n", bridge: "br-1", blocks: ["10.0.0.0/8"] };
  for (const [stored, reason] of [
    [{ version: 2, networks: [] }, /not of this version/],
    [{ version: 1, networks: {} }, /not of this version/],
    [{ version: 1, networks: [1] }, /a network is no object/],
    [{ version: 1, networks: [{ blocks: [] }] }, /no name, or no blocks/],
    [{ version: 1, networks: [{ ...valid, blocks: "10.0.0.0/8" }] }, /no name, or no blocks/],
    [{ version: 1, networks: [{ ...valid, blocks: ["0.0.0.0/0"] }] }, /0\.0\.0\.0\/0 is no network of containers/],
    [{ version: 1, networks: [{ ...valid, blocks: ["2000::/3"] }] }, /2000::\/3 is no network of containers/],
    [{ version: 1, networks: [{ ...valid, blocks: ["127.0.0.0/8"] }] }, /127\.0\.0\.0\/8 is no network/],
    [{ version: 1, networks: [{ ...valid, blocks: ["10.0.0.1/8"] }] }, /bits beyond its prefix/],
    [{ version: 1, networks: [{ ...valid, blocks: [7] }] }, /7 is no block/],
    [{ version: 1, networks: [{ ...valid, bridge: "lo" }] }, /"lo" is no bridge/],
    [{ version: 1, networks: [{ ...valid, bridge: "a/b" }] }, /"a\/b" is no bridge/],
    [{ version: 1, networks: [{ ...valid, bridge: "x".repeat(16) }] }, /is no bridge/],
    [{ version: 1, networks: [{ ...valid, bridge: {} }] }, /\{\} is no bridge/],
    [
      {
        version: 1,
        networks: [
          { ...valid, blocks: Array.from({ length: POLICY_LIMITS.closedNetworkBlocks + 1 }, () => "10.0.0.0/8") },
        ],
      },
      /too many blocks/,
    ],
    [
      { version: 1, networks: Array.from({ length: POLICY_LIMITS.closedNetworks + 1 }, () => valid) },
      /more than 1000 networks/,
    ],
  ] as const) {
    const folder = newFolder();
    writeFileSync(closedNetworksPath(folder), JSON.stringify(stored), { mode: 0o600 });
    assert.throws(
      () => readClosedNetworks(folder),
      (error) => codeOf(error) === "CLOSED_NETWORKS" && reason.test(reasonOf(error)),
    );
  }
});

test("a file that is no file, too long, or that others may write is refused", async () => {
  const [shared, link, long, pipe] = [newFolder(), newFolder(), newFolder(), newFolder()];
  await writeClosedNetworks(shared, [AGENTS]);
  chmodSync(closedNetworksPath(shared), 0o622);
  symlinkSync(closedNetworksPath(shared), closedNetworksPath(link));
  writeFileSync(closedNetworksPath(long), " ".repeat(POLICY_LIMITS.closedNetworksBytes + 1), { mode: 0o600 });
  mkdirSync(closedNetworksPath(pipe));
  for (const folder of [shared, link, long, pipe])
    assert.throws(() => readClosedNetworks(folder), { code: "CLOSED_NETWORKS" });
});

test("networks are closed at boot if they are kept, and the unit is enabled", async () => {
  const units = newFolder();
  const folder = newFolder();
  const boot = new BootClosing({ folder, unitFolders: [units] });
  assert.match(boot.problem ?? "", /nothing is kept yet/);
  assert.equal(await boot.keep([AGENTS]), undefined);
  assert.match(boot.problem ?? "", /dns11-boot\.service is not enabled/);
  mkdirSync(join(units, "docker.service.wants"));
  writeFileSync(join(units, "docker.service.wants/dns11-boot.service"), "");
  assert.equal(boot.problem, undefined);
  // A network that the boot would not close is none that is said to be closed.
  assert.match((await boot.keep([network("wide", "128.0.0.0/1")])) ?? "", /no network of containers/);
  assert.match(boot.problem ?? "", /cannot be kept/);
  assert.deepEqual(readClosedNetworks(folder), [AGENTS]);
});

test("without the folder of a service nothing is kept", async () => {
  const boot = new BootClosing({ folder: undefined });
  assert.equal(await boot.keep([AGENTS]), undefined);
  assert.match(boot.problem ?? "", /does not run as the service/);
});
