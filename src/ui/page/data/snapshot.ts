/** A board filled from a snapshot: it makes no request and has no run. */
import type { Snapshot } from "../../../api/snapshot.ts";
import { parse } from "./api.ts";
import { Board } from "./board.ts";

declare global {
  // oxlint-disable-next-line no-var -- a property of globalThis, written by data.js.
  var dns11Snapshot: unknown;
}

export function boardOfSnapshot(found: unknown): Board {
  // It goes by way of text: that makes it printable, as what comes from a run.
  const snapshot = parse(JSON.stringify(found)) as Snapshot;
  const board = new Board(null);
  const { takenAt, isRedacted } = snapshot;
  board.connection.set({ state: "snapshot", takenAt, isRedacted });
  board.status.set(snapshot.status);
  board.containers.set(snapshot.containers);
  board.networks.set(snapshot.networks);
  board.matrix.set(snapshot.matrix);
  board.failures.set(snapshot.failures);
  board.upstreams.set(snapshot.upstreams);
  board.history.set(snapshot.history);
  board.cache.set(snapshot.cache);
  board.events.set(snapshot.events?.events.toReversed() ?? []);
  for (const query of snapshot.queries?.queries ?? []) board.tape.add(query);
  board.isFilled.set(true);
  return board;
}
