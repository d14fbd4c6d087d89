/** The page of `dns11 ui`: its entry. It shows a snapshot if there is one, and otherwise what a running dns11 reports. */
import { options, render } from "preact";
import { Api, parse } from "./data/api.ts";
import { Board } from "./data/board.ts";
import { LiveRun } from "./data/live-run.ts";
import { reloadForNewToken, takeToken } from "./data/token.ts";
import { App } from "./view/app.tsx";
import type { Snapshot } from "../../api/snapshot.ts";

declare global {
  // oxlint-disable-next-line no-var -- a property of globalThis, written by data.js.
  var dns11Snapshot: unknown;
}

/** A board filled from a snapshot: it makes no request and has no run. */
function boardOfSnapshot(found: unknown): Board {
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

// Everything that changes between two frames is drawn at once.
options.debounceRendering = (draw) => void requestAnimationFrame(draw);

function openBoard(): Board {
  const snapshot = globalThis.dns11Snapshot;
  if (snapshot !== undefined) return boardOfSnapshot(snapshot);
  const api = new Api(takeToken());
  reloadForNewToken();
  return new Board((board) => new LiveRun(api, board));
}

const root = document.querySelector("#app");
if (root !== null) render(<App board={openBoard()} />, root);
