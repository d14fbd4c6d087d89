/**
 * LinkThreadMain: the thread that attaches programs, for `link-thread.ts`.
 */
import { openSync } from "node:fs";
import { parentPort } from "node:worker_threads";

import { reasonOf } from "../../../base/lib/fault.ts";
import { setNetworkNamespace } from "../../../kernel/libc.ts";
import type { LinkRequest, LinkResult } from "./link-thread.ts";
import { attachToLoopback } from "../../../kernel/bpf.ts";

const home = openSync("/proc/thread-self/ns/net", "r");

function attach({ namespace, program }: LinkRequest): LinkResult {
  try {
    setNetworkNamespace(namespace);
    return { link: attachToLoopback(program) };
  } catch (error) {
    return { reason: reasonOf(error) };
  }
}

parentPort?.postMessage("loaded");
parentPort?.on("message", (request: LinkRequest) => {
  const result = attach(request);
  // In the namespace of a container, the thread would keep that namespace alive. If this fails the thread ends, and nothing else has run in
  // it.
  setNetworkNamespace(home);
  parentPort?.postMessage(result);
});
