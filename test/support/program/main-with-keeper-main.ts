// Main process with a keeper and without an engine: attaches to the namespaces in its arguments, answers every query
// there with one address, and reports when all are verified and the state of its keeper. SIGUSR2 blocks its event loop
// for ever; a line on stdin attaches to a further namespace or detaches from an attached one.

import { randomInt } from "node:crypto";
import { createInterface } from "node:readline";
import { join } from "node:path";

import type { Attachment } from "../../../src/container/attach/attachment.ts";
import type { OpenEndpoint } from "../../../src/container/attach/attachment-parts.ts";
import { warmThreadPool } from "../../../src/container/namespace/namespace-runner.ts";
import { KeeperLink } from "../../../src/keeper/keeper-link.ts";
import { preallocateDescriptors } from "../../../src/kernel/descriptors.ts";
import { Attachments, answeringWith } from "./attachments.ts";

const [folder = "", keeper = "", ...paths] = process.argv.slice(2);
const ADDRESS = [192, 0, 2, 1];
const FIRST_ZONE_MAX = 32_768;

const report = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
process.on("SIGUSR2", () => {
  for (;;);
});
preallocateDescriptors();
await warmThreadPool();
const nothing = (): void => undefined;
const handOver = {
  onHandoverRequested: () => report({ requested: true }),
  onHandoverCancelled: nothing,
  onKeeperLost: nothing,
  onHandoverCompleted: nothing,
};
const socketPath = join(folder, "keeper.sock");
const link = keeper === "with-keeper" ? new KeeperLink({ socketPath, onEvent: report, ...handOver }) : undefined;
link?.start();
const attaching = new Attachments();
const openEndpoint: OpenEndpoint = answeringWith(Buffer.from(ADDRESS));
// Others than those of an earlier process in the same namespaces, whose connections are still tracked.
let zone = randomInt(1, FIRST_ZONE_MAX);
const attached = new Map<string, Attachment>();

async function attach(path: string): Promise<void> {
  const nextZone = (): number => zone++;
  const attachment = attaching.in(path, { openEndpoint, nextZone, keep: link && ((held) => link.hold(held)) });
  attached.set(path, attachment);
  await attachment.open();
  await attachment.verify();
  if (attachment.state.kind !== "attached") report({ failed: attachment.state });
}

for (const path of paths) await attach(path);
report({ ready: attached.size });
setInterval(() => report({ keeper: link?.report }), 50);
createInterface({ input: process.stdin }).on("line", (path) => {
  const attachment = attached.get(path);
  attached.delete(path);
  if (attachment === undefined) void attach(path);
  else void attachment.close();
});
