/** The page of `dns11 ui`: its entry. It shows a snapshot if there is one, and otherwise what a running dns11 reports. */
import { options, render } from "preact";

import { Api } from "./data/api.ts";
import { Board } from "./data/board.ts";
import { LiveRun } from "./data/live-run.ts";
import { boardOfSnapshot } from "./data/snapshot.ts";
import { reloadForNewToken, takeToken } from "./data/token.ts";
import { App } from "./view/app.tsx";

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
