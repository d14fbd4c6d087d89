// What the parts of the data plane share: the engine, the forms of dns11 that take turns beside the others, how long each is
// measured, and where the samples go.

import type { Engine } from "../support/engine/engine.ts";
import type { Pace } from "./pace.ts";
import type { Questions } from "./questions.ts";
import type { Ours } from "./server.ts";
import type { Tally } from "./tally.ts";

export type Bench = {
  readonly engine: Engine;
  readonly ours: readonly Ours[];
  readonly tally: Tally;
  readonly questions: Questions;
  readonly pace: Pace;
  // No further round begins after this, on the clock of `performance`; each has one.
  readonly endMs: number;
};
