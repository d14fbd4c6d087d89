import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { addExamples } from "../../../../cmd/help/help-layout.ts";
import { note } from "../../../../cmd/options/container-argument.ts";
import { type ControlOptions, addControlOptions, clientFor } from "../../../../cmd/options/control-options.ts";
import { EXIT } from "../../../../cmd/process/exit-code.ts";
import { OwnServer } from "../../../../cmd/process/own-server.ts";
import { Signals, exitCode, readyClient } from "../../../../cmd/run-with.ts";
import { printableText } from "../../../../cmd/text/printable.ts";
import type { ControlClient } from "../../../api/control-client.ts";
import { engineAddress } from "../../../api/engine-address.ts";
import { PolicyHold } from "../../../api/policy-hold.ts";
import { Fault, codeOf, reasonOf } from "../../../base/lib/fault.ts";
import { learnedPolicy } from "../traffic/learned-policy.ts";
import { SANDBOX_LABEL, type SandboxPlace } from "./container-request.ts";
import { EngineProxy, askEngine } from "./engine-proxy.ts";
import { NETWORK_PREFIX, Sandbox, networkOf, ownPolicy } from "./sandbox.ts";
import { Witness, reportText } from "./witness.ts";

interface SandboxOptions extends ControlOptions {
  readonly allow: readonly string[];
  readonly policy?: string;
  readonly learn?: boolean | string;
  readonly report?: string;
  readonly agents?: boolean;
}

const ENDED_POLL_MS = 250;
/** One that is started again is gone for a moment. */
const ENDED_FOR_MS = 2_000;
/** An engine that is started again. */
const AWAY_MS = 60_000;
/** Whoever has one starts containers as well. */
const OTHER_ENGINES = ["/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"];
const CLOSED = "What was started stays closed.";
/** What a policy of a file says of whom it is for, and how: a sandbox decides that. */
const OF_SANDBOX: ReadonlySet<string> = new Set(["for", "mode", "addresses"]);

export function add(program: Command): void {
  const command = program
    .command("sandbox")
    .summary("Run containers that may ask and reach only some names")
    .description(
      "Run a docker command, docker compose or a devcontainer: its containers may resolve and reach only what is allowed, from their first instruction on",
    )
    .argument("[command...]", "the command, after --")
    .option(
      "--allow <name>",
      "a rule, as in a policy: api.example.com:443, *.x.com, an address; repeatable",
      collect,
      [],
    )
    .option("--policy <file>", "a settings file with one policy, as `dns11 policy learn` prints it: its rules")
    .option("--learn [file]", "refuse nothing, and print the policy that allows what was used")
    .option("--report <file>", "write what was asked, reached and refused as JSON")
    .option("--agents", "print what an agent inside should know, for its AGENTS.md");
  addExamples(
    command,
    ["dns11 sandbox --allow api.example.com -- docker run --rm -it agent", "only this name"],
    ["dns11 sandbox --learn policy.yaml -- docker compose run tests", "what does it need?"],
    ["dns11 sandbox --policy policy.yaml -- docker compose up", "a whole project"],
  );
  addControlOptions(command).action(async (words: readonly string[], options: SandboxOptions) => {
    if (options.agents === true) process.stdout.write(AGENTS_TEXT);
    else process.exitCode = await runSandbox(words, options);
  });
}

function collect(value: string, before: readonly string[]): readonly string[] {
  return [...before, value];
}

async function runSandbox(words: readonly string[], options: SandboxOptions): Promise<number> {
  if (words.length === 0)
    throw new Fault("USAGE", "dns11 sandbox needs a command", {
      remedy: "For example: dns11 sandbox --allow api.example.com -- docker run --rm -it agent",
    });
  const policyFor = await policyOf(options);
  // Better now than when all has been seen.
  for (const file of [options.report, options.learn]) if (typeof file === "string") requireWritable(file);
  const { socketPath: engine } = engineAddress(options.host, process.env);
  const signals = new Signals();
  const { client, server } = await servingClient(options, signals);
  if (client === undefined) return server?.exitCode || EXIT.failure;
  try {
    return await hold({ words, options, engine, client, signals, policyFor });
  } finally {
    await server?.stop();
  }
}

function requireWritable(file: string): void {
  try {
    writeFileSync(file, "", { flag: "a" });
  } catch (error) {
    throw new Fault("USAGE", `"${file}" cannot be written: ${reasonOf(error)}`, {
      remedy: "Name a file in a folder that is there.",
    });
  }
}

/** A dns11 that runs, or one for as long as the command does. */
async function servingClient(
  options: SandboxOptions,
  signals: Signals,
): Promise<{ readonly client: ControlClient | undefined; readonly server?: OwnServer }> {
  try {
    const client = await clientFor(options);
    await client.status();
    return { client };
  } catch (error) {
    if (codeOf(error) !== "NOT_RUNNING") throw error;
  }
  note("no dns11 runs for this engine: one is started for as long as this takes");
  const { host, stateDir } = options;
  const place = [...(host === undefined ? [] : ["--host", host]), "--state-dir", stateDir];
  const server = new OwnServer(["run", "--with", ...place], {
    DNS11_LISTENER: "true",
    DNS11_EGRESS: "true",
    // The output is the command's, and its end says what was refused.
    DNS11_LOG_LEVEL: process.env["DNS11_LOG_LEVEL"] ?? "error",
  });
  try {
    const client = await Promise.race([readyClient(server, options, signals.received), server.ended]);
    if (typeof client === "object" && !signals.received.aborted) return { client, server };
    await server.stop();
    return { client: undefined, server };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

interface Held {
  readonly words: readonly string[];
  readonly options: SandboxOptions;
  readonly engine: string;
  readonly client: ControlClient;
  readonly signals: Signals;
  readonly policyFor: (scopes: readonly string[]) => object;
}

async function hold({ words, options, engine, client, signals, policyFor }: Held): Promise<number> {
  const id = `${process.pid}-${randomBytes(2).toString("hex")}`;
  const folder = mkdtempSync(join(socketFolder(), `${NETWORK_PREFIX}${process.pid}-`));
  const ends: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  try {
    const socket = join(folder, "docker.sock");
    const { engine: served } = await client.status();
    const place: SandboxPlace = {
      id,
      network: networkOf(id),
      sockets: [engine, socket, options.stateDir, ...OTHER_ENGINES, ...(served === null ? [] : [served.address])],
      hasUserNamespaces: await hasUserNamespaces(engine),
    };
    await removeLeft(engine);
    const [name, scopes] = ownPolicy(id);
    const isEnforced = options.learn === undefined;
    const policy = await PolicyHold.start(async () => await client.openPolicyLease(), {
      policies: { [name]: policyFor(scopes) },
      // What refuses nothing closes nothing.
      after: isEnforced ? "closed" : "open",
    });
    ends.push(async () => await policy.end());
    policy.ended.catch(() => note("dns11 does not come back: everything stays closed"));
    const sandbox = new Sandbox({
      ...{ engine, place, client, hold: policy, onNote: note },
      policyFor,
      isEnforced,
    });
    const witness = new Witness(client, sandbox.names, isEnforced);
    ends.push(() => witness.stop());
    policy.onChange = (isInForce) => {
      witness.isPartial = true;
      note(isInForce ? "held again" : "dns11 has gone: everything is closed meanwhile");
    };
    const proxy = await EngineProxy.listen(engine, socket, sandbox.onCall);
    ends.push(() => proxy.close());
    if (signals.received.aborted) return EXIT.failure;
    const env: NodeJS.ProcessEnv = { ...process.env, DOCKER_HOST: `unix://${socket}` };
    delete env["DOCKER_CONTEXT"];
    const code = await exitCode(words, signals, env);
    // It is the command that Ctrl-C at a terminal ends; SIGTERM is for all of it.
    if (!signals.seen.has("SIGTERM")) await untilEnded(sandbox, signals.received);
    if (!sandbox.isUsed)
      note("the command has started no container through this sandbox: docker -H, --context and sudo in it go past it");
    proxy.close();
    // The engine takes longer to remove a network than all else here.
    await Promise.all([tell(witness, options), sandbox.end()]);
    const left = await sandbox.allRunning().catch(() => undefined);
    if (left === undefined) note("the engine does not answer: everything stays closed");
    else if (left.length > 0 && isEnforced)
      note(`${left.join(", ")} still ${left.length === 1 ? "runs" : "run"}, and nothing is allowed any more`);
    // Where nobody is left, nobody who comes later is concerned. Where dns11 has gone, all of it stays closed.
    else await policy.change({ after: "open" }).catch(() => undefined);
    return code;
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

/** Containers that the command has left running are held on. */
async function untilEnded(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  let [isSaid, lastMs, seenMs] = [false, 0, performance.now()];
  while (!signal.aborted) {
    const running = await sandbox.running().catch(() => undefined);
    const nowMs = performance.now();
    if (running === undefined) {
      if (nowMs - seenMs > AWAY_MS) throw new Fault("ENGINE_AWAY", "The engine does not come back", { remedy: CLOSED });
    } else {
      seenMs = nowMs;
      if (running.length > 0) lastMs = nowMs;
      else if (!isSaid || nowMs - lastMs > ENDED_FOR_MS) return;
      if (!isSaid) note(`holding ${running.join(", ")}; Ctrl-C closes it; dns11 policy log -f shows what is refused`);
      isSaid = true;
    }
    await sleep(ENDED_POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function tell(witness: Witness, { learn, report }: SandboxOptions): Promise<void> {
  const seen = await witness.end();
  for (const line of reportText(seen)) note(line);
  if (report !== undefined) writeFileSync(report, `${JSON.stringify(seen, undefined, 2)}\n`);
  if (learn === undefined) return;
  const { text, rules, notes } = learnedPolicy(
    witness.traffic,
    { name: "sandbox", scope: undefined },
    new Date().toISOString(),
  );
  for (const each of notes) note(each);
  if (typeof learn !== "string") process.stderr.write(printableText(text));
  else {
    writeFileSync(learn, text);
    note(`${rules} rules, for: dns11 sandbox --policy ${learn}`);
  }
}

async function policyOf({ allow, policy, learn }: SandboxOptions): Promise<Held["policyFor"]> {
  const [written = {}, ...others] = policy === undefined ? [] : await policiesOf(policy);
  if (others.length > 0)
    throw new Fault("BAD_POLICY", `"${policy}" has ${others.length + 1} policies`, {
      remedy: "A sandbox has one: leave the others out.",
    });
  const { allow: own = [], ...fields } = written as { readonly allow?: readonly unknown[] };
  const kept = Object.fromEntries(Object.entries(fields).filter(([key]) => !OF_SANDBOX.has(key)));
  const mode = learn === undefined ? "enforce" : "learn";
  return (scopes) => ({ ...kept, for: scopes, mode, addresses: "enforce", allow: [...own, ...allow] });
}

async function policiesOf(file: string): Promise<readonly object[]> {
  const { policiesIn } = await import("../../../../cmd/process/policy-file.ts");
  return Object.values(policiesIn(file));
}

/** Nobody else may connect to a socket in it, and no container is likely to mount it. */
function socketFolder(): string {
  if (process.getuid?.() === 0) return "/run";
  return process.env["XDG_RUNTIME_DIR"] ?? tmpdir();
}

async function hasUserNamespaces(engine: string): Promise<boolean> {
  const { text } = await askEngine(engine, "GET", "/info");
  const { SecurityOptions: options } = JSON.parse(text) as { readonly SecurityOptions?: readonly string[] | null };
  return (options ?? []).some((option) => /^name=userns\b/.test(option));
}

/** What sandboxes have left that were killed. The engine keeps networks that are in use. */
async function removeLeft(engine: string): Promise<void> {
  const isLeft = (name: string): boolean =>
    name.startsWith(NETWORK_PREFIX) && !isAlive(Number(name.slice(NETWORK_PREFIX.length).split("-", 1)[0]));
  for (const name of readdirSync(socketFolder()).filter(isLeft))
    rmSync(join(socketFolder(), name), { recursive: true, force: true });
  const filters = encodeURIComponent(JSON.stringify({ label: [SANDBOX_LABEL] }));
  const { status, text } = await askEngine(engine, "GET", `/networks?filters=${filters}`);
  const networks = status === 200 ? (JSON.parse(text) as readonly { readonly Name: string }[]) : [];
  for (const { Name: name } of networks.filter((network) => isLeft(network.Name)))
    await askEngine(engine, "DELETE", `/networks/${name}`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
}

/** What a program, or an agent, in a sandbox is told, as a section of its AGENTS.md. */
const AGENTS_TEXT = `## Network access

This container may resolve and reach only names that its user has allowed. dns11 holds it to that from outside: nothing in the
container can change it, and trying another name server, a proxy, an address or another port does not help.

- A refused name does not exist (NXDOMAIN): programs say "could not resolve host" or "bad address".
- A refused address resets the connection at once ("connection refused"), or is unreachable.
- To learn why, ask for a TXT record below why.dns11.alt:
  \`nslookup -type=txt NAME.why.dns11.alt\`
  It answers "allowed" or "refused", and the rule.
- An address opens when its name is resolved. Resolve the name again where an old address does not answer any more.
- If you need a name that is refused, do not work around it: tell your user the exact name, what you need it for, and the line
  \`dns11 policy\` shows them, or that they can start you again with \`--allow NAME\`.
`;
