// Plan of a run, derived from its seed: which faults, when, for how long, on which container. The same seed and length
// give the same plan on every machine; the report shows how long a fault really took.

import { Random } from "../fuzz/random.ts";

// Faults of one track run one after the other; different tracks overlap.
export const KINDS = {
  // SIGKILL, SIGTERM, SIGSTOP for less and for more than the keeper allows; little memory, few descriptors, a full state
  // folder (also at start), a wall clock step.
  dns11: ["kill", "terminate", "stop", "hang", "memory", "descriptors", "full-folder", "full-start", "clock"],
  engine: ["kill-dockerd", "restart-dockerd", "kill-containerd"],
  // A container is restarted, replaced by another one of its name, joins and leaves a network; short-lived containers
  // and networks come and go.
  containers: ["restart", "replace", "join", "short-lived", "network"],
  // Kernel tables are flushed: conntrack of a container or of the engine's host, rules of a container.
  kernel: ["connections", "connections-of-host", "rules"],
} as const;

export type Track = keyof typeof KINDS;
export type Kind = (typeof KINDS)[Track][number];

export type Fault = {
  readonly track: Track;
  readonly kind: Kind;
  // Pause after the track's previous fault.
  readonly waitMs: number;
  readonly forMs: number;
  // Index of the container.
  readonly target: number;
  // Further parameter of the fault, such as a size.
  readonly amount: number;
};

export type Plan = {
  readonly seed: number;
  readonly lengthMs: number;
  readonly tracks: Readonly<Record<Track, readonly Fault[]>>;
  // Scenario of the upstream servers, see test/support/scripted/scenario.ts.
  readonly upstreams: string;
};

const TRACKS = Object.keys(KINDS) as Track[];
// Longest pause before the next fault of a track. While dns11 and dockerd are both down no answer is expected, so engine
// faults are less frequent.
const WAIT_MS: Readonly<Record<Track, number>> = { dns11: 4_000, engine: 14_000, containers: 5_000, kernel: 5_000 };
const FOR_MS: Readonly<Record<Track, readonly [least: number, most: number]>> = {
  dns11: [300, 4_000],
  engine: [300, 3_000],
  containers: [200, 1_500],
  kernel: [300, 2_500],
};
// Without a keeper an alarm fires after 8 seconds.
const STOP_MS = [200, 6_000] as const;
const HANG_MS = [9_000, 11_000] as const;
const AMOUNT = 1_000;

const UPSTREAM_ACTS = [
  "silent",
  "closed",
  "servfail",
  "refused",
  "garbage",
  "wrong-id",
  "wrong-source",
  "wrong-question",
  "truncated",
  "midway",
  "nxdomain",
  "slow 400ms",
  "big 40",
  "spoof 5",
] as const;
const UPSTREAM_ACT_MS = [500, 5_000] as const;
const UPSTREAM_OK_MS = [500, 3_000] as const;
export const UPSTREAMS = 2;

// `only` restricts the kinds.
export function planOf(seed: number, lengthMs: number, targets: number, only: readonly Kind[] = []): Plan {
  const of = (track: Track): Fault[] =>
    trackOf(track, new Random(seed, TRACKS.indexOf(track)), lengthMs, targets, only);
  const tracks = { dns11: of("dns11"), engine: of("engine"), containers: of("containers"), kernel: of("kernel") };
  return { seed, lengthMs, tracks, upstreams: upstreamsOf(new Random(seed, TRACKS.length), lengthMs) };
}

function trackOf(track: Track, random: Random, lengthMs: number, targets: number, only: readonly Kind[]): Fault[] {
  const kinds = KINDS[track].filter((kind) => only.length === 0 || only.includes(kind));
  const faults: Fault[] = [];
  let bag: Kind[] = [];
  for (let atMs = 0; atMs < lengthMs && kinds.length > 0;) {
    // Each kind once before any repeats, so that a short run contains all.
    if (bag.length === 0) bag = shuffled(kinds, random);
    const kind = bag.pop() ?? random.pick(kinds);
    const [least, most] = kind === "hang" ? HANG_MS : kind === "stop" ? STOP_MS : FOR_MS[track];
    const fault: Fault = {
      track,
      kind,
      waitMs: random.below(WAIT_MS[track]),
      forMs: between(random, least, most),
      target: random.below(targets),
      amount: random.below(AMOUNT),
    };
    faults.push(fault);
    atMs += fault.waitMs + fault.forMs;
  }
  return faults;
}

function upstreamsOf(random: Random, lengthMs: number): string {
  const lines: string[] = ["ttl 3"];
  for (let server = 1; server <= UPSTREAMS; server++) {
    lines.push(`server ${server}`);
    for (let atMs = 0; atMs < lengthMs;) {
      const [okMs, actMs] = [between(random, ...UPSTREAM_OK_MS), between(random, ...UPSTREAM_ACT_MS)];
      lines.push(`for ${okMs}ms ok`, `for ${actMs}ms ${random.pick(UPSTREAM_ACTS)}`);
      atMs += okMs + actMs;
    }
    lines.push("loop");
  }
  return lines.join("\n");
}

function between(random: Random, least: number, most: number): number {
  return least + random.below(most - least);
}

function shuffled<T>(from: readonly T[], random: Random): T[] {
  const rest = [...from];
  const drawn: T[] = [];
  while (rest.length > 0) drawn.push(...rest.splice(random.below(rest.length), 1));
  return drawn;
}
