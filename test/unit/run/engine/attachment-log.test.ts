/**
 * What the log says of a container that cannot be attached: a warning, but not of one that has just ended.
 */
import assert from "node:assert/strict";
import { test } from "node:test";

import type { Log } from "../../../../src/base/log/log.ts";
import { RateLimitedLog } from "../../../../src/base/log/rate-limited-log.ts";
import type { AttachmentState } from "../../../../src/container/attach/attachment-state.ts";
import { AttachmentLog } from "../../../../src/run/engine/engine-events.ts";

const CLOSED: AttachmentState = { kind: "closed" };

function failed(code: string): AttachmentState {
  return { kind: "failed", code, reason: "why", culprits: [], isHeld: false, atMs: 0 };
}

function levelsOf(...states: readonly AttachmentState[]): string[] {
  const levels: string[] = [];
  const at = (level: string) => (): void => void levels.push(level);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn") } as unknown as Log;
  const attachmentLog = new AttachmentLog({
    log,
    limitedLog: new RateLimitedLog(log),
    factOf: () => undefined,
    unserved: () => undefined,
  });
  for (const state of states) attachmentLog.onState("id", "web", state, false);
  return levels;
}

test("a container that cannot be attached is a warning", () => {
  assert.deepEqual(levelsOf(failed("ATTACH_FAILED")), ["warn"]);
});

test("of a namespace that is no container's it says what that means", () => {
  const texts: string[] = [];
  const at = (): void => undefined;
  const warn = (_: unknown, text: string): void => void texts.push(text);
  const log = { debug: at, info: at, warn } as unknown as Log;
  const unserved = (id: string): string | undefined => (id === "host" ? "names do not resolve there" : undefined);
  const attachmentLog = new AttachmentLog({
    ...{ log, unserved },
    limitedLog: new RateLimitedLog(log),
    factOf: () => undefined,
  });
  for (const id of ["host", "web"]) attachmentLog.onState(id, id, failed("ATTACH_FAILED"), false);
  assert.deepEqual(texts, ["not attached, names do not resolve there", "not attached, Docker's resolver answers"]);
});

test("one whose namespace is gone is a warning only if it has not ended by the next attempt", () => {
  assert.deepEqual(levelsOf(failed("NAMESPACE_GONE"), CLOSED), ["debug"]);
  assert.deepEqual(levelsOf(failed("NAMESPACE_GONE"), failed("NAMESPACE_GONE")), ["debug", "warn"]);
  assert.deepEqual(levelsOf(failed("NAMESPACE_GONE"), CLOSED, failed("NAMESPACE_GONE")), ["debug", "debug"]);
});
