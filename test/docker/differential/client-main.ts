// The process that sends queries from inside a container's network namespace. Each line of its input is one question to
// one resolver, as JSON; a line of its output has the outcome.

import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { createInterface } from "node:readline";

import type { QueryRequest, Outcome } from "./client.ts";

const RESOLVER = "127.0.0.11";
// Long enough for the octets before it to be sent as a separate packet.
const BETWEEN_CHUNKS_MS = 20;

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line) as QueryRequest;
  const startMs = performance.now();
  (request.transport === "udp" ? queryUdp : queryTcp)(request, (outcome) => {
    const elapsedMs = Math.round(performance.now() - startMs);
    process.stdout.write(`${JSON.stringify({ ...outcome, key: request.key, elapsedMs })}\n`);
  });
}

type End = (outcome: Pick<Outcome, "replies" | "ended">) => void;

function queryUdp({ server, port, messages, waitMs }: QueryRequest, onEnd: End): void {
  const socket = createSocket("udp4");
  const end = once((outcome) => {
    clearTimeout(timer);
    socket.close();
    onEnd(outcome);
  });
  const timer = setTimeout(() => end({ replies: [], ended: "by time" }), waitMs);
  socket.on("error", (error) => end({ replies: [], ended: error.message }));
  socket.on("message", (reply) => end({ replies: [reply.toString("hex")], ended: "answered" }));
  socket.connect(port, server ?? RESOLVER, () => socket.send(Buffer.from(messages[0] ?? "", "hex")));
}

function queryTcp(request: QueryRequest, onEnd: End): void {
  const { server, port, messages, tail, chunk, isHalfClosed, untilClosed, waitMs } = request;
  const socket = connect({ port, host: server ?? RESOLVER, noDelay: true, allowHalfOpen: true });
  const framed = messages.map((message) => Buffer.from(message, "hex")).flatMap((octets) => [length(octets), octets]);
  const stream = Buffer.concat([...framed, Buffer.from(tail ?? "", "hex")]);
  const replies: string[] = [];
  let pending = Buffer.alloc(0);
  const end = once((outcome) => {
    clearTimeout(timer);
    socket.destroy();
    onEnd(outcome);
  });
  const timer = setTimeout(() => end({ replies, ended: "by time" }), waitMs);
  socket.on("error", () => end({ replies, ended: "closed" }));
  socket.on("end", () => end({ replies, ended: pending.length === 0 ? "closed" : "closed midway" }));
  socket.on("data", (octets: Buffer) => {
    pending = Buffer.concat([pending, octets]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const next = 2 + pending.readUInt16BE(0);
      replies.push(pending.toString("hex", 2, next));
      pending = pending.subarray(next);
    }
    if (replies.length >= messages.length && untilClosed !== true) end({ replies, ended: "answered" });
  });
  socket.on("connect", () => write(0));

  function write(from: number): void {
    const to = Math.min(stream.length, from + (chunk ?? stream.length));
    if (to > from) socket.write(stream.subarray(from, to));
    if (to < stream.length) setTimeout(() => write(to), BETWEEN_CHUNKS_MS);
    else if (isHalfClosed === true) socket.end();
  }
}

function length(octets: Buffer): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(octets.length);
  return bytes;
}

function once(act: End): End {
  let isDone = false;
  return (outcome) => {
    if (isDone) return;
    isDone = true;
    act(outcome);
  };
}
