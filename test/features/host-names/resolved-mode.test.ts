// Proves what counts as a refusal by systemd-resolved: its bus has no other way to say that it is being restarted.

import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { test } from "node:test";

import type { ServedNamespace } from "../../../src/container/attach/attach-mode.ts";
import { NamespaceRunner } from "../../../src/container/namespace/namespace-runner.ts";
import { Fault } from "../../../src/base/lib/fault.ts";
import { type LinkDomain, BusErrorReply } from "../../../src/features/host-names/resolved-bus.ts";
import { ResolvedMode } from "../../../src/features/host-names/resolved-mode.ts";
import { NetlinkMemory } from "../../../src/kernel/netlink-socket.ts";
import { Netns } from "../../support/rig/netns.ts";

const NO_RESOLVED = new BusErrorReply("org.freedesktop.DBus.Error.ServiceUnknown", "it does not exist");

// A link in a namespace, and a bus that first says that there is no systemd-resolved; at that time `meanwhile` is called.
async function toldWithout(
  meanwhile: (mode: ResolvedMode) => void,
  failure: Error = NO_RESOLVED,
): Promise<{ refused: string[]; told: number; asked: number }> {
  await using netns = await Netns.create();
  const runner = new NamespaceRunner();
  const memory = new NetlinkMemory();
  const fd = openSync(netns.netnsPath, "r");
  const within: ServedNamespace["within"] = (work) => runner.within(fd, work);
  const refused: string[] = [];
  let [asked, told] = [0, 0];
  let domains: LinkDomain[] = [];
  const mode = new ResolvedMode({
    domains: () => ["docker"],
    subnets: () => [],
    root: () => root,
    memory,
    bus: {
      domains: async () => {
        if (asked++ > 0) return domains;
        // The bus reads the error and what comes after it from one piece of the stream.
        const error = Promise.reject(failure);
        meanwhile(mode);
        return await error;
      },
      setLink: async ({ index }) => {
        told++;
        domains = [{ index, domain: "docker" }];
      },
    },
    onRefused: (reason) => refused.push(reason),
  });
  const root = openSync("/", "r");
  within(() => mode.openLink());
  const probe = (): never => assert.fail("nothing is probed");
  const served: ServedNamespace = { fd, within, zone: 1, probe };
  await mode.onVerified(served).catch(() => undefined);
  // What was begun meanwhile has its turn before this.
  await mode.onVerified(served);
  mode.withdraw();
  runner.close();
  return { refused, told, asked };
}

test("without systemd-resolved the link is refused", async () => {
  const { refused, told } = await toldWithout(() => undefined);
  assert.deepEqual([refused, told], [["it does not exist"], 1]);
});

test("one that is started while it is asked has refused nothing, and is told", async () => {
  const { refused, told } = await toldWithout((mode) => mode.forget());
  assert.deepEqual([refused, told], [[], 1]);
});

test("one that is started a thousand times while it is asked is asked once more", async () => {
  const { asked, told } = await toldWithout((mode) => {
    for (let start = 0; start < 1000; start++) mode.forget();
  });
  // The last of the three is asked whether all is as it should be.
  assert.deepEqual([asked, told], [3, 1]);
});

test("a bus that is lost has refused nothing", async () => {
  const lost = new Fault("BUS", "Cannot reach the system bus of this host");
  const { refused, told } = await toldWithout(() => undefined, lost);
  assert.deepEqual([refused, told], [[], 1]);
});
