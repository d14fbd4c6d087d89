/**
 * A reader of dnstap that does anything: accepts something else, says too much, says nothing, reads nothing, or closes at once. What waits for it is
 * bounded, what has no room is counted, and it is asked again after growing pauses.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type Server, type Socket, createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, test } from "node:test";

import {
  type FrameCounts,
  FrameShare,
  FrameStream,
  controlFrame,
  readControl,
  DNSTAP_LIMITS,
} from "../../../src/features/dnstap/frame-stream.ts";
import { makeFolder } from "../../support/rig/folder.ts";
import { waitFor } from "../../support/rig/wait.ts";

const CONTENT = Buffer.from("protobuf:dnstap.Dnstap");
const [ACCEPT, START, STOP, READY, FINISH] = [1, 2, 3, 4, 5];
const folder = makeFolder("frames");
let sockets = 0;
const open: { close(): void }[] = [];

afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

interface Scripted {
  readonly stream: FrameStream;
  readonly counts: FrameCounts;
  readonly reasons: string[];
  readonly connections: Socket[];
  readonly received: () => Buffer;
}

/** A reader that does that with each connection. */
async function against(act: (socket: Socket) => void): Promise<Scripted> {
  const path = join(folder, `${++sockets}.sock`);
  const connections: Socket[] = [];
  const received: Buffer[] = [];
  const server: Server = createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => undefined);
    socket.on("data", (bytes) => received.push(bytes));
    act(socket);
  });
  server.listen(path);
  await once(server, "listening");
  const counts = { written: 0, dropped: 0 };
  const reasons: string[] = [];
  const events = { onConnected: () => undefined, onAway: (reason: string) => reasons.push(reason) };
  const stream = new FrameStream(path, events, counts);
  open.push({
    close: () => {
      void stream.close();
      for (const each of connections) each.destroy();
      server.close();
    },
  });
  return { stream, counts, reasons, connections, received: () => Buffer.concat(received) };
}

function accept(socket: Socket): void {
  socket.once("data", () => socket.write(controlFrame(ACCEPT, CONTENT)));
}

function push(stream: FrameStream, bytes: Uint8Array, share = new FrameShare()): void {
  stream.push(
    {
      sizeMax: bytes.length,
      write: (block, at) => {
        block.set(bytes, at);
        return at + bytes.length;
      },
    },
    share,
  );
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  await waitFor(what, () => Promise.resolve(isSo() ? true : undefined));
}

test("the handshake is that of Frame Streams, frames have their length before them, and the end is confirmed", async () => {
  const { stream, counts, received, connections } = await against(accept);
  push(stream, Buffer.from("early"));
  await until("the handshake", () => stream.isOpen);
  push(stream, Buffer.from("frame"));
  await until("both frames", () => counts.written === 2);
  push(stream, Buffer.from("last"));
  const closed = stream.close();
  const frames = ["\0\0\0\x05early", "\0\0\0\x05frame", "\0\0\0\x04last"].map((text) => Buffer.from(text, "latin1"));
  const all = Buffer.concat([
    controlFrame(READY, CONTENT),
    controlFrame(START, CONTENT),
    ...frames,
    controlFrame(STOP),
  ]);
  await until("all of it", () => received().length >= all.length);
  assert.deepEqual(received(), all);
  connections[0]?.write(controlFrame(FINISH));
  await closed;
  assert.deepEqual(counts, { written: 3, dropped: 0 });
  push(stream, Buffer.from("late"));
  assert.equal(counts.dropped, 1);
});

test("whoever accepts something else, or says anything at all, is left", async () => {
  const accepts = controlFrame(ACCEPT, CONTENT);
  const said: readonly (readonly [string, Buffer])[] = [
    ["another type", controlFrame(ACCEPT, Buffer.from("protobuf:other"))],
    ["another control frame", controlFrame(FINISH)],
    ["no control frame", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["a length beyond the limit", Buffer.from([0, 0, 0, 0, 0, 0, 255, 255])],
    ["a length of nothing", Buffer.from([0, 0, 0, 0, 0, 0, 0, 0])],
    ["a field beyond the end", Buffer.from([0, 0, 0, 0, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1, 255, 255, 255, 255])],
    ["more than it was asked", Buffer.concat([accepts, accepts])],
    ["very much", Buffer.alloc(10_000_000, 1)],
  ];
  for (const [what, bytes] of said) {
    const { stream, reasons } = await against((socket) => socket.once("data", () => socket.write(bytes)));
    await until(what, () => reasons.length > 0);
    assert.match(reasons.join(), /^it (?:does not accept dnstap|sends what nobody asked for)$/, what);
    assert.ok(!stream.isOpen);
  }
  // The same once it is open.
  const { stream, reasons, connections } = await against(accept);
  await until("the handshake", () => stream.isOpen);
  connections[0]?.write(Buffer.alloc(1));
  connections[0]?.write(Buffer.alloc(2_000));
  await until("the end of it", () => reasons.length > 0);
});

test("what waits for a reader that reads nothing is bounded, each container has its share, and the rest is counted", async () => {
  const { stream, counts } = await against((socket) => {
    accept(socket);
    socket.once("data", () => socket.pause());
  });
  await until("the handshake", () => stream.isOpen);
  const share = new FrameShare();
  const frame = Buffer.alloc(64 * 1024);
  let pushed = 0;
  await until("dropped frames", () => {
    for (let index = 0; index < 10; index++, pushed++) push(stream, frame, share);
    return counts.dropped > 0;
  });
  // One container has filled its share; another one has its own.
  await until("the blocks to be full", () => {
    const before = counts.dropped;
    push(stream, frame, share);
    pushed++;
    return counts.dropped > before;
  });
  const before = counts.dropped;
  push(stream, Buffer.alloc(1_000));
  assert.equal(counts.dropped, before);
  const waiting = pushed + 1 - counts.written - counts.dropped;
  assert.ok(waiting * frame.length <= 2 * DNSTAP_LIMITS.waitingBytes + frame.length, `${waiting} frames wait`);
  // It ends although nobody confirms that, and nothing is lost from the counts.
  await stream.close();
  await until("all to be counted", () => counts.written + counts.dropped === pushed + 1);
});

test("a reader that closes at once is asked again after pauses, is named once, and gets whole frames in the end", async () => {
  let isGood = false;
  const { stream, reasons, connections, received, counts } = await against((socket) => {
    if (isGood) accept(socket);
    else socket.destroy();
  });
  push(stream, Buffer.from("kept"));
  await until("three connections", () => connections.length >= 3);
  assert.equal(reasons.length, 1);
  assert.deepEqual(counts, { written: 0, dropped: 0 });
  isGood = true;
  await until("the handshake", () => stream.isOpen);
  await until("the frame", () => received().includes("\0\0\0\x04kept"));
});

test("what is no control frame is never one, and reading it ends", () => {
  for (let round = 0; round < 20_000; round++) {
    const bytes = randomBytes(round % 600);
    if (round % 2 === 0) bytes.subarray(0, 6).fill(0);
    const control = readControl(bytes);
    if (control === undefined) assert.ok(bytes.length < 8 + DNSTAP_LIMITS.controlBytes);
    else if (control !== "damaged") for (const each of control.contents) assert.ok(each.length <= bytes.length);
  }
});
