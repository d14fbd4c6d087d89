/**
 * Start: the first half of the GitHub Action. It installs dns11 unless told where it is, starts it beside the engine of the
 * runner, waits until it serves, and starts the recorder. Both run until the second half ends them.
 */
import { spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync, mkdtempSync, openSync, readFileSync, writeFileSync, accessSync, constants } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { codeOf } from "../base/lib/fault.ts";
import { FILES, asRoot, clientOf, end, isStartedBy, stateDirOf } from "./place.ts";
import {
  type Inputs,
  annotation,
  quoted,
  readInputs,
  saveFolder,
  variable,
  withVariables,
  type Environment,
  InputError,
} from "./runner.ts";

/** The engine of a runner is up long before a job starts. */
const READY_MS = 60_000;
const POLL_MS = 100;
const LOG_BYTES_SHOWN = 8_000;

class StartError extends Error {
  override readonly name = "StartError";
}

/** Fails the step with what was wrong. */
export async function start(): Promise<void> {
  try {
    await startAll();
  } catch (error) {
    process.stdout.write(annotation("error", "dns11", (error as Error).message));
    process.exitCode = 1;
  }
}

async function startAll(): Promise<void> {
  const inputs = readInputs(process.env);
  const policies = policyPath(process.env, inputs);
  const folder = mkdtempSync(join(variable(process.env, "RUNNER_TEMP"), "dns11-"));
  saveFolder(process.env, folder);
  await mustBeFree();
  const program = inputs.program === "" ? install(inputs) : inputs.program;
  const file = policies === undefined ? undefined : policyFileOf(program, policies, inputs.policyMode, folder);
  await serve(program, file === undefined ? inputs.args : ["--config", file, ...inputs.args], folder);
  await startRecorder(folder);
}

/**
 * dns11 runs as root, but what records is the runner's user, whom Docker and dns11 know by the same group. What serves the machine of
 * a runner is not this job's: the installer would replace it by the version of this job.
 */
async function mustBeFree(): Promise<void> {
  const serving = await clientOf(process.env)
    .then(async (client) => await client.status())
    .catch((error: Error) => {
      if (codeOf(error) === "ENGINE_PERMISSION")
        throw new StartError(`${error.message}: the user of the runner must be root or in the group docker`);
    });
  if (serving !== undefined)
    throw new StartError(
      `another dns11 serves this engine already (process ${serving.pid}): stop it, or leave this step out`,
    );
}

/** The installer of this repository, of the same version, verifies what it downloads. */
function install({ version: wanted, url }: Inputs): string {
  const checkout = fileURLToPath(new URL("../../..", import.meta.url));
  const { version } = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as { readonly version: string };
  const from = url === "" ? [] : ["--url", url];
  const words = [...asRoot(), "sh", join(checkout, "scripts/install.sh"), "--version", wanted || version, ...from];
  const { status, error } = run(words);
  if (status !== 0)
    throw new StartError(`dns11 could not be installed${error === undefined ? "" : `: ${error.message}`}`);
  return "dns11";
}

function run([command = "", ...args]: readonly string[]): { status: number | null; error?: Error | undefined } {
  return spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
}

/** Until it is ready: it answers the queries of all containers, also of later ones. */
async function serve(program: string, args: readonly string[], folder: string): Promise<void> {
  const log = openSync(join(folder, FILES.log), "w");
  const engine = process.env["DOCKER_HOST"];
  const root = asRoot();
  const words = [
    ...root,
    ...(root.length === 0 ? [] : withVariables(process.env)),
    program,
    "run",
    ...(engine === undefined || engine === "" ? [] : ["--host", engine]),
    ...["--state-dir", stateDirOf(process.env)],
    ...args,
  ];
  const [command = "", ...rest] = words;
  const child = spawn(command, rest, { detached: true, stdio: ["ignore", log, log] });
  let ended: string | undefined;
  child.on("error", ({ message }) => (ended = message));
  child.on("exit", (code, signal) => (ended = `it ended with ${code ?? signal}`));
  // A step that is cancelled has a second half, too; sudo passes the signal on.
  if (child.pid !== undefined) writeFileSync(join(folder, FILES.daemon), String(child.pid));
  const endMs = performance.now() + READY_MS;
  for (;;) {
    const status = await clientOf(process.env)
      .then(async (client) => await client.status())
      .catch(() => undefined);
    if (ended !== undefined) throw notStarted(ended, folder);
    // Another one may have come first. It is not this job's to end, and ours ends by itself.
    const isOurs = status !== undefined && child.pid !== undefined && isStartedBy(status.pid, child.pid);
    if (status?.isReady === true && isOurs) {
      child.unref();
      writeFileSync(join(folder, FILES.daemon), String(status.pid));
      return;
    }
    if (performance.now() > endMs) {
      if (child.pid !== undefined) await end(child.pid, asRoot());
      throw notStarted(`it was not ready after ${READY_MS / 1000} seconds`, folder);
    }
    await sleep(POLL_MS);
  }
}

/** Names of containers may be in the log. */
function notStarted(reason: string, folder: string): StartError {
  const log = readFileSync(join(folder, FILES.log), "utf8").slice(-LOG_BYTES_SHOWN);
  process.stdout.write(quoted(log, randomUUID()));
  return new StartError(`dns11 did not start: ${reason}; its log is above`);
}

/** Waits until it can be ended: a job may be short. */
async function startRecorder(folder: string): Promise<void> {
  const recorder = fileURLToPath(new URL("./record.mjs", import.meta.url));
  const child = spawn(process.execPath, [recorder, folder], { detached: true, stdio: "ignore" });
  const endMs = performance.now() + READY_MS;
  while (!existsSync(join(folder, FILES.recorder))) {
    if (child.exitCode !== null || performance.now() > endMs) throw new StartError("the recorder did not start");
    await sleep(POLL_MS);
  }
  child.unref();
}

/** A mode in a line of its own, as `dns11 policy learn` and the documents write it. */
const MODE_LINE = /^([ \t]+mode:[ \t]*)["']?(?:audit|learn|enforce)["']?(?=[ \t]*(?:#.*)?\r?$)/gm;
const OUTPUT_BYTES_MAX = 2 ** 24;
const SHOWN_MAX = 8_000;

/** The modes of policies, by their names. */
type Modes = Readonly<Record<string, { readonly mode: string }>>;

/** The path of the settings file with the policies of the job; undefined without one. Throws if it cannot be read. */
export function policyPath(env: Environment, { policy }: Inputs): string | undefined {
  if (policy === "") return undefined;
  const path = resolve(env["GITHUB_WORKSPACE"] ?? "", policy);
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch (error) {
    throw new InputError(`policy: "${policy}" cannot be read: ${(error as Error).message}`);
  }
}

/**
 * The path of what dns11 is to be started with: where the step says the mode, a copy in which only the modes are others, so that lines
 * are those of the file. Throws if dns11 itself does not find a valid settings file with policies.
 */
export function policyFileOf(program: string, path: string, mode: Inputs["policyMode"], folder: string): string {
  const policies = checked(program, path);
  if (Object.keys(policies).length === 0) throw new InputError(`policy: "${path}" has no policies`);
  if (mode === "") return path;
  const copy = join(folder, FILES.policy);
  writeFileSync(copy, withMode(readFileSync(path, "utf8"), mode));
  const others = Object.entries(checked(program, copy)).filter(([, each]) => each.mode !== mode);
  if (others.length > 0)
    throw new InputError(
      `policy-mode: "${path}" must have the mode of each policy in a line of its own (mode: audit), but ${others[0]?.[0]} has not`,
    );
  return copy;
}

export function withMode(text: string, mode: string): string {
  return text.replaceAll(MODE_LINE, `$1${mode}`);
}

function checked(program: string, path: string): Modes {
  const { status, stdout, stderr, error } = spawnSync(program, ["check-config", "--json", path], {
    encoding: "utf8",
    maxBuffer: OUTPUT_BYTES_MAX,
  });
  if (error !== undefined) throw new InputError(`policy: "${path}" could not be checked: ${error.message}`);
  process.stdout.write(stderr === "" ? "" : quoted(stderr.slice(0, SHOWN_MAX), randomUUID()));
  if (status !== 0) throw new InputError(`policy: "${path}" is no valid settings file; its mistakes are above`);
  const { settings } = JSON.parse(stdout) as { readonly settings: { readonly policies?: { readonly value: Modes } } };
  return settings.policies?.value ?? {};
}
