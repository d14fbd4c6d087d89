/**
 * dns11 policy learn: a policy that allows what was asked and connected to.
 */
import { type Command, InvalidArgumentError } from "commander";

import type { ContainersRequest, ControlClient } from "../src/api/control-client.ts";
import { Fault, reasonWithRemedy } from "../src/base/lib/fault.ts";
import { isPolicyName } from "../src/policy/model/policy.ts";
import { type LearnedFor, learnedPolicy } from "../src/policy/traffic/learned-policy.ts";
import { Traffic } from "../src/policy/traffic/traffic.ts";
import { readDuration } from "./options/name-options.ts";
import { type ProjectOptions, addProjectOption, containersRequest, note } from "./options/container-argument.ts";
import { type ControlOptions, addControlOptions, clientFor } from "./options/control-options.ts";
import { recordedTraffic } from "./policy-diff.ts";
import { EXIT } from "./process/exit-code.ts";
import { abortOnSignal, stopped } from "./process/own-process.ts";

interface LearnOptions extends ControlOptions, ProjectOptions {
  readonly for?: number;
  readonly wildcards?: boolean;
}

const WAIT_MIN_MS = 1_000;

export function addLearn(policy: Command): void {
  const learn = policy
    .command("learn")
    .description(
      "Print a settings file with a policy that allows what containers asked and connected to; it needs egress: true",
    )
    .argument("[container]", "its name, Compose service or ID; without one, --project")
    .option("--for <time>", "watch for so long, such as 10m, until Ctrl-C; without it, use what is recorded", readWait)
    .option("--wildcards", "write a wildcard for five names or more right below one domain of one owner")
    .exitOverride();
  addControlOptions(addProjectOption(learn)).action(
    async (container: string | undefined, options: LearnOptions) => await showLearned(container, options),
  );
}

function readWait(text: string): number {
  const ms = readDuration(text);
  if (ms < WAIT_MIN_MS) throw new InvalidArgumentError("Use a time of at least a second, such as 10m.");
  return ms;
}

async function showLearned(word: string | undefined, options: LearnOptions): Promise<void> {
  if (word === undefined && options.project === undefined)
    throw new Fault("NO_CONTAINER", "A policy is learned from one project or one container", {
      remedy: "Name it: `dns11 policy learn --project shop`, or `dns11 policy learn web`.",
    });
  const client = await clientFor(options);
  const chosen = await containersRequest(client, word, options);
  // First of all: without it nothing can be learned.
  const before = await client.egress(chosen);
  if (!before.hasNames)
    throw new Fault("QUERIES_OFF", "Names are not kept, so no policy can be learned", {
      remedy: "Set queries.names to full.",
    });
  const whom = await learnedFor(client, chosen, options);
  const traffic =
    options.for === undefined ? await recordedTraffic(client, chosen) : await watched(client, chosen, options.for);
  const { text, rules, notes } = learnedPolicy(
    traffic,
    { ...whom, wildcards: options.wildcards === true },
    new Date().toISOString(),
  );
  for (const each of notes) note(each);
  if (traffic.containers.size === 0) note("no container asked or connected to anything");
  note(`${rules} rules; check them with: dns11 policy diff FILE`);
  process.stdout.write(text);
}

async function learnedFor(
  client: ControlClient,
  chosen: ContainersRequest,
  { project }: ProjectOptions,
): Promise<LearnedFor> {
  if (chosen.service !== undefined) return { name: policyName(chosen.service), scope: `service=${chosen.service}` };
  if (chosen.container === undefined) return { name: policyName(project ?? ""), scope: `project=${project}` };
  const { containers } = await client.status();
  const found = containers.find(({ id, name }) => id === chosen.container || name === chosen.container);
  const service = found?.service ?? undefined;
  if (service !== undefined) return { name: policyName(service), scope: `service=${service}` };
  return { name: policyName(found?.name ?? chosen.container), scope: undefined };
}

function policyName(text: string): string {
  const name = text.toLowerCase().replaceAll(/[^a-z0-9_.-]/g, "-");
  return isPolicyName(name) ? name : "learned";
}

/** What happens from now on, for so long or until somebody has seen enough. */
async function watched(client: ControlClient, chosen: ContainersRequest, forMs: number): Promise<Traffic> {
  const traffic = new Traffic();
  const sinceMs = Date.now();
  const end = new AbortController();
  const { signal } = end;
  const timer = setTimeout(() => end.abort(), forMs);
  abortOnSignal("SIGHUP").addEventListener("abort", () => end.abort(), { once: true });
  note("learning; Ctrl-C ends it with what it has seen");
  let missed = 0;
  for await (const each of client.follow(chosen, signal)) {
    if ("missed" in each) missed += each.missed;
    else traffic.addQuery(each);
  }
  clearTimeout(timer);
  if (!signal.aborted) {
    note(`${reasonWithRemedy(stopped())} What was seen until then follows.`);
    process.exitCode = EXIT.failure;
  }
  if (missed > 0) note(`${missed} queries came too fast to be seen`);
  // It may be gone, and those that it has recorded with it.
  const connections = await client.egress(chosen).catch(() => undefined);
  if (connections !== undefined) traffic.addConnections(connections, sinceMs);
  return traffic;
}
