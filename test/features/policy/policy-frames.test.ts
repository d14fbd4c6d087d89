/**
 * Frames that get past a policy's tables, if they can: by their sources, by a neighbour, by the routers that they name. What arrives is
 * what counts; each is first seen to arrive without a policy.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { PacketSocket } from "../../support/packets/frames.ts";
import {
  type HostileFrame,
  type HostileParts,
  MARK,
  framesBetweenPeers,
  framesOutside,
  framesToNeighbour,
  sourceRoutedFrames,
} from "../../support/packets/hostile-frames.ts";
import { type Member, OUTSIDE, type PolicedNetwork, bytes, policedPair } from "./policed-network.ts";
import { pause, waitFor } from "../../support/rig/wait.ts";

const KEEP_MS = 600_000;
/** What goes by a neighbour comes later than the fence. */
const SETTLE_MS = 200;

function partsOf(network: PolicedNetwork, sender: Member, neighbour: Member): HostileParts {
  return { sender, neighbour, bridgeMac: network.bridgeMac, to: OUTSIDE.other, to6: OUTSIDE.other6 };
}

/** Sends each frame, and waits until it arrives. */
async function allArrive(sender: PacketSocket, meter: PacketSocket, frames: readonly HostileFrame[]): Promise<void> {
  for (const { about, bytes: sent } of frames) {
    meter.frames();
    sender.send(sent);
    await waitFor(`${about} to arrive`, () => (hasMark(meter) ? true : undefined));
  }
}

/** Sends all frames, then one that may arrive, on the same way; nothing but that one does. */
async function noneArrives(
  sender: PacketSocket,
  meter: PacketSocket,
  frames: readonly HostileFrame[],
  fence: () => Promise<unknown>,
): Promise<void> {
  for (const { about, bytes: sent } of frames) {
    meter.frames();
    sender.send(sent);
    await fence();
    assert.ok(!hasMark(meter), about);
  }
  await pause(SETTLE_MS);
  assert.ok(!hasMark(meter), "one that took its time");
}

function hasMark(meter: PacketSocket): boolean {
  return meter.frames().some((frame) => frame.includes(MARK));
}

test("no hostile frame arrives outside", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await other.netns.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1"]);
  await network.warmUp();
  const sender = await network.packets(policed.netns, "eth0");
  const meter = await network.packets(network.outside, "out0");
  const frames = framesOutside(partsOf(network, policed, other));
  await allArrive(sender, meter, frames);
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  const fence = async (): Promise<void> => assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  await noneArrives(sender, meter, frames, fence);
});

test("no frame arrives that names the routers on its way, where the machine obeys it", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  for (const link of ["all", "br0"])
    await network.machine.enter("sysctl", ["-qw", `net.ipv4.conf.${link}.accept_source_route=1`]);
  await network.warmUp();
  const sender = await network.packets(policed.netns, "eth0");
  const meter = await network.packets(network.outside, "out0");
  const open = { to: OUTSIDE.allowed, to6: OUTSIDE.allowed6 };
  const frames = sourceRoutedFrames(partsOf(network, policed, other), open);
  // A strict one is passed on only where its next router is on the next link, as no address here is.
  await allArrive(
    sender,
    meter,
    frames.filter(({ about }) => !about.includes("strict")),
  );
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(
    policed.id,
    [open.to, open.to6].map((address) => ({ address: bytes(address) })),
    KEEP_MS,
  );
  const fence = async (): Promise<void> => assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  await noneArrives(sender, meter, frames, fence);
});

test("no hostile frame arrives at a neighbour, who may be spoken to", async () => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  await network.warmUp();
  const sender = await network.packets(policed.netns, "eth0");
  const meter = await network.packets(other.netns, "eth0");
  const parts = partsOf(network, policed, other);
  const [hostile, ordinary] = [framesToNeighbour(parts), framesBetweenPeers(parts)];
  await allArrive(sender, meter, [...ordinary, ...hostile]);
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  await table.open(policed.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  const fence = async (): Promise<void> => assert.equal(await network.connect(policed, OUTSIDE.allowed, 443), "open");
  await noneArrives(sender, meter, hostile, fence);
  await allArrive(sender, meter, ordinary);
  const alone = network.policed(policed, { reachesPeers: false });
  await table.apply(alone, [network.linkOf(policed, { reachesPeers: false })]);
  await noneArrives(sender, meter, [...ordinary, ...hostile], fence);
});

test("where the machine filters its bridges, peers are still peers, and nobody passes packets on for them", async (t) => {
  const { network, policed, other } = await policedPair();
  await using _ = network;
  if (!(await network.filterBridges(true))) return t.skip("the module br_netfilter is not loaded");
  await network.serve(other.netns, [443]);
  using table = await network.table();
  await table.apply(network.policed(policed), [network.linkOf(policed)]);
  for (const address of [other.address, other.address6])
    assert.equal(await network.connect(policed, address, 443), "open", address);
  assert.equal(await network.connect(other, OUTSIDE.other, 443), "open");
  assert.equal(await network.connect(policed, OUTSIDE.other, 443), "refused");
  await table.apply(network.policed(policed, { reachesPeers: false }), [
    network.linkOf(policed, { reachesPeers: false }),
  ]);
  assert.equal(await network.connect(policed, other.address, 443), "silent");
});

test("from the bridge of a closed network nothing passes, whatever its source, before its link is known", async () => {
  const { network, policed: born, other } = await policedPair();
  await using _ = network;
  await other.netns.enter("sysctl", ["-qw", "net.ipv4.ip_forward=1"]);
  await network.warmUp();
  const sender = await network.packets(born.netns, "eth0");
  const meter = await network.packets(network.outside, "out0");
  const frames = framesOutside(partsOf(network, born, other));
  await allArrive(sender, meter, frames);
  // As at boot: the tables come with what is closed.
  const networks = [{ name: "closed", bridge: "br0", blocks: [] }];
  using table = await network.table({ networks });
  await table.apply(network.policed(other), [network.linkOf(other)]);
  await table.open(other.id, [{ address: bytes(OUTSIDE.allowed), port: 443 }], KEEP_MS);
  await network.machine.enter("conntrack", ["-F"]);
  const fence = async (): Promise<void> => assert.equal(await network.connect(other, OUTSIDE.allowed, 443), "open");
  await noneArrives(sender, meter, frames, fence);
});
