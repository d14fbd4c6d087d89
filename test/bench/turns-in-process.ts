// Loaded into a dns11 (--import): measures the turns of its event loop between two requests to a socket.

import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { isMainThread } from "node:worker_threads";

import { LoopTurns } from "./loop-turns.ts";

let turns: LoopTurns | undefined;

const path = process.env["DNS11_BENCH_TURNS"];
if (isMainThread && path !== undefined) {
  // It may have executed itself again, with fewer capabilities.
  rmSync(path, { force: true });
  createServer((_, response) => {
    const ended = turns;
    turns = ended === undefined ? new LoopTurns() : undefined;
    void (async () => response.end(JSON.stringify((await ended?.end()) ?? {})))();
  })
    .listen(path)
    .unref();
}
