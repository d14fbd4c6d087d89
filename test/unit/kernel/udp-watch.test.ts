// Proves that a watch rests for one turn of the event loop: it depends on undocumented parts of Node.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextRound } from "node:timers/promises";

import { UdpWatch } from "../../../src/kernel/udp-watch.ts";
import { UdpClient, bindUdp } from "../support/loopback.ts";
import { waitFor } from "../../support/rig/wait.ts";

test("without resting all waiting packets are delivered in one turn, with it one each turn", async () => {
  for (const [isResting, perRound] of [
    [false, 5],
    [true, 1],
  ] as const) {
    await using client = new UdpClient();
    const { fd, port } = bindUdp();
    const rounds: number[] = [];
    let round = 0;
    let isOver = false;
    const watch = new UdpWatch(
      fd,
      4,
      () => {
        rounds.push(round);
        if (isResting) watch.rest();
      },
      assert.fail,
    );
    for (let count = 0; count < 5; count++) client.send(Buffer.of(count), port);
    const counting = (async () => {
      while (!isOver) {
        await nextRound();
        round++;
      }
    })();
    await waitFor("five packets", async () => (rounds.length === 5 ? true : undefined));
    isOver = true;
    await counting;
    assert.equal(Math.max(...rounds.map((one) => rounds.filter((other) => other === one).length)), perRound);
    watch.close();
  }
});

test("a watch that is closed while it rests stays closed", async () => {
  const { fd } = bindUdp();
  const watch = new UdpWatch(fd, 4, () => undefined, assert.fail);
  watch.rest();
  assert.ok(watch.isResting);
  watch.close();
  await nextRound();
  assert.ok(!watch.isResting);
  watch.rest();
  assert.ok(!watch.isResting);
});

test("a watch rests on as long as its reader reads something, then Node delivers again", async () => {
  await using client = new UdpClient();
  const { fd, port } = bindUdp();
  let reads = 0;
  const delivered: number[] = [];
  const watch = new UdpWatch(
    fd,
    4,
    ([packet = 0]) => {
      delivered.push(packet);
      watch.rest();
    },
    assert.fail,
    () => ++reads < 4,
  );
  client.send(Buffer.of(1), port);
  await waitFor("the first packet", async () => (delivered.length === 1 ? true : undefined));
  client.send(Buffer.of(2), port);
  while (watch.isResting) {
    assert.deepEqual(delivered, [1]);
    await nextRound();
  }
  assert.equal(reads, 4);
  await waitFor("the second packet", async () => (delivered.length === 2 ? true : undefined));
  watch.close();
});

test("a reader may close its watch", async () => {
  const { fd } = bindUdp();
  let reads = 0;
  const watch = new UdpWatch(
    fd,
    4,
    () => undefined,
    assert.fail,
    () => {
      reads++;
      watch.close();
      return true;
    },
  );
  watch.rest();
  for (let round = 0; round < 3; round++) await nextRound();
  assert.deepEqual([reads, watch.isResting], [1, false]);
});
