/**
 * Sandbox: what a command starts through the engine is held to one policy, from its first instruction on. A lease on a running dns11 has
 * the policy; here it is seen that each container and each network is one of those that it is for, before the engine goes on.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import type { ControlClient } from "../../../api/control-client.ts";
import type { PolicyHold } from "../../../api/policy-hold.ts";
import { Fault } from "../../../base/lib/fault.ts";
import { COMPOSE_LABEL } from "../../../base/model/compose.ts";
import { bareName } from "../../../container/watch/translate.ts";
import {
  type CreateBody,
  type HostConfig,
  SANDBOX_LABEL,
  type SandboxPlace,
  type VolumeOptions,
  checkHeld,
  checkVolume,
  heldRequest,
  requirePlainKeys,
} from "./container-request.ts";
import { type EngineCall, type EngineReply, type OnCall, askEngine } from "./engine-proxy.ts";

const CLOSED_WITHIN_MS = 10_000;
const CLOSED_POLL_MS = 5;
/** What is started, entered or attached to. */
const TOUCHED = /^\/containers\/([^/]+)\/(start|restart|unpause|rename|update|exec|attach|attach\/ws)$/;
/** The ids of sandboxes; anybody may write anything into a label. */
const ID = /^\d+-[0-9a-f]{4}$/;
const JOINED = /^\/networks\/([^/]+)\/connect$/;
const BUILDS: ReadonlySet<string> = new Set(["/build", "/session", "/grpc"]);
/** Networks of these drivers: a link on the host that the kernel judges, or none at all. */
const HELD_DRIVERS: ReadonlySet<string> = new Set(["bridge", "null"]);
const BRIDGE_NAME = "com.docker.network.bridge.name";
const OK = 200;
const NOT_FOUND = 404;
const CREATED = 201;
const DEFAULT_NETWORK = "bridge";
export const NETWORK_PREFIX = "dns11-sandbox-";
const READABLE_LENGTH = 32;
const HASH_LENGTH = 8;

interface SandboxParts {
  /** The engine's socket. */
  readonly engine: string;
  readonly place: SandboxPlace;
  readonly client: Pick<ControlClient, "policies">;
  readonly hold: Pick<PolicyHold, "change">;
  /** The policy for whom these choices name. */
  readonly policyFor: (scopes: readonly string[]) => object;
  /** It refuses; otherwise it records, and nothing waits for it. */
  readonly isEnforced: boolean;
  /** For whoever typed the command to know. */
  readonly onNote: (text: string) => void;
}

interface Inspected {
  readonly Id: string;
  readonly Name: string;
  readonly State?: { readonly Running?: boolean };
  readonly Config?: { readonly Labels?: Readonly<Record<string, string>> | null };
  readonly HostConfig?: HostConfig;
  readonly NetworkSettings?: { readonly Networks?: Readonly<Record<string, unknown>> | null };
}

interface Listed {
  readonly Id: string;
  readonly Names?: readonly string[];
}

interface Network {
  readonly Id: string;
  readonly Name: string;
  readonly Driver?: string;
  readonly Containers?: Readonly<Record<string, unknown>> | null;
}

/**
 * The policies of a sandbox, which differ only in whom they are for. Each has a name of its own, by which the next sandbox takes the
 * place of what one before has left closed, and by which two do not have the same container or network.
 */
type Policies = ReadonlyMap<string, readonly string[]>;

/** That of containers that are made in it. */
export function ownPolicy(id: string): [name: string, scopes: readonly string[]] {
  return [`sandbox-${id}`, [`label=${SANDBOX_LABEL}=${id}`, `network=${networkOf(id)}`]];
}

/** The network of containers that name none. */
export function networkOf(id: string): string {
  return `${NETWORK_PREFIX}${id}`;
}

export class Sandbox {
  readonly #parts: SandboxParts;
  #policies: Policies;
  readonly #noted = new Set<string>();
  readonly #projects = new Set<string>();
  /** By the ids of containers that it has, also of those that are gone. */
  readonly names = new Map<string, string>();
  /** The command has asked for a container. */
  isUsed = false;
  #ownNetwork: Promise<void> | undefined;
  #changing: Promise<unknown> = Promise.resolve();

  constructor(parts: SandboxParts) {
    this.#parts = parts;
    this.#policies = new Map([ownPolicy(parts.place.id)]);
  }

  readonly onCall: OnCall = async (call) => {
    const { method, path } = call;
    if (BUILDS.has(path)) this.#note("steps of docker build are not held: build before, without dns11 sandbox");
    if (method !== "POST" && !path.endsWith("/attach/ws")) return undefined;
    if (path === "/containers/create") return { body: await this.#create(call) };
    if (path === "/networks/create") return { reply: await this.#createNetwork(call) };
    if (path === "/services/create")
      throw new Fault("POLICY_NOT_HELD", "A service of a swarm cannot be held", { remedy: "Use docker compose up." });
    if (path === "/images/create")
      this.#note("images are pulled by Docker itself, which asks for their registries' names");
    if (path === "/volumes/create") checkCreated((await call.json()) as Volume, this.#parts.place);
    await this.#touch(call);
    const [, network] = JOINED.exec(path) ?? [];
    if (network !== undefined) await this.#take([network]);
    return undefined;
  };

  /** Those of its containers that it has started and that run: their names. */
  async running(): Promise<string[]> {
    const listed = await this.#listOwn();
    return listed.map(({ Names: names }) => bareName(names?.[0] ?? ""));
  }

  /** The same with those that ran before. */
  async allRunning(): Promise<string[]> {
    const taken = await Promise.all([...this.names.keys()].map(async (id) => await this.#inspect(id)));
    const left = taken.flatMap((each) => (each?.State?.Running === true ? bareName(each.Name) : []));
    return [...new Set([...(await this.running()), ...left])];
  }

  /** What was made for it is removed, as far as nobody uses it: containers that are left cannot start on it any more. */
  async end(): Promise<void> {
    const { engine, place } = this.#parts;
    if (this.#ownNetwork === undefined) return;
    // An engine that has gone has nothing to remove it with; the next sandbox does.
    await askEngine(engine, "DELETE", `/networks/${place.network}`).catch(() => undefined);
  }

  async #create(call: EngineCall): Promise<CreateBody> {
    this.isUsed = true;
    const { place } = this.#parts;
    const name = call.query.get("name") ?? "the container";
    const request = heldRequest((await call.json()) as CreateBody, place, name);
    for (const other of request.sharedWith) await this.#requireOwn(other, name);
    for (const note of request.notes) this.#note(note);
    for (const volume of request.volumes) await this.#requireHeldVolume(volume, name);
    await this.#noteProject(request.body.Labels?.[COMPOSE_LABEL.project]);
    if (request.usesOwnNetwork) await this.#makeOwnNetwork();
    await this.#take(request.networks);
    return request.body;
  }

  async #requireHeldVolume(volume: string, name: string): Promise<void> {
    const found = await this.#askJson<{ readonly Driver?: string; readonly Options?: VolumeOptions }>(
      `/volumes/${encodeURIComponent(volume)}`,
    );
    if (found !== undefined) checkVolume(found.Driver, found.Options, this.#parts.place, name);
  }

  /** Compose starts nothing that runs already. */
  async #noteProject(project: string | undefined): Promise<void> {
    if (project === undefined || this.#projects.has(project)) return;
    this.#projects.add(project);
    for (const { Id: id, Names: names } of await this.#list(`${COMPOSE_LABEL.project}=${project}`))
      if (!this.names.has(id))
        this.#note(
          `${bareName(names?.[0] ?? id)} runs already, and is not held: it may pass on what others may not. Stop the project before`,
        );
  }

  async #requireOwn(reference: string, name: string): Promise<void> {
    const shared = await this.#inspect(reference);
    if (shared === undefined || this.#isOwn(shared)) return;
    throw new Fault(
      "POLICY_NOT_HELD",
      `${name} uses the network, processes or mounts of ${bareName(shared.Name)}, which is not in this sandbox`,
      {
        remedy: "Start both of them in one sandbox.",
      },
    );
  }

  /** A container that is changed, entered or started is taken into it. */
  async #touch(call: EngineCall): Promise<void> {
    const [, reference, what = ""] = TOUCHED.exec(call.path) ?? [];
    if (reference === undefined) return;
    if (what === "exec" || what === "update") checkChange((await call.json()) as Change, reference);
    if (what === "start") checkStart(await call.json(), reference);
    await this.#takeContainer(reference, what === "rename");
  }

  async #takeContainer(reference: string, isRenamed = false): Promise<void> {
    const found = await this.#inspect(reference);
    if (found === undefined) return;
    this.isUsed = true;
    const { place } = this.#parts;
    const name = bareName(found.Name);
    const isOwn = this.#isOwn(found);
    // Also one of its own: what is mounted may lead elsewhere by now.
    const notes = checkHeld(found.HostConfig ?? {}, place, name);
    if (isOwn) {
      this.names.set(found.Id, name);
      return;
    }
    if (isRenamed)
      throw new Fault("POLICY_NOT_HELD", `${name} is held by its name`, {
        remedy: "Rename it outside of the sandbox.",
      });
    for (const note of notes) this.#note(note);
    const former = found.Config?.Labels?.[SANDBOX_LABEL];
    await this.#take(Object.keys(found.NetworkSettings?.Networks ?? {}), [
      takenPolicy("container", name),
      // What that sandbox has closed would stay closed.
      ...(former !== undefined && ID.test(former) ? [ownPolicy(former)] : []),
    ]);
    this.names.set(found.Id, name);
    if (found.State?.Running === true)
      this.#note(
        `${name} runs already: what it did before this moment was not held, and what is open to it stays open`,
      );
    else this.#note(`${name} was not made in this sandbox: docker rm it, so that Docker's own resolver is held, too`);
  }

  /** The engine makes it, and it is closed before anybody learns of it. */
  async #createNetwork(call: EngineCall): Promise<EngineReply> {
    const { Options: options } = (await call.json()) as { readonly Options?: Readonly<Record<string, string>> | null };
    const bridge = options?.[BRIDGE_NAME];
    // What else is on it is no container, and would be a neighbour.
    if (bridge !== undefined && existsSync(join("/sys/class/net", basename(bridge))))
      throw new Fault("POLICY_NOT_HELD", `The host has a link ${bridge} already`, {
        remedy: `Delete the option ${BRIDGE_NAME}.`,
      });
    const reply = await call.forward();
    if (reply.status === CREATED) await this.#take([(JSON.parse(reply.text) as Pick<Network, "Id">).Id]);
    return reply;
  }

  async #makeOwnNetwork(): Promise<void> {
    this.#ownNetwork ??= this.#createOwnNetwork();
    await this.#ownNetwork;
  }

  async #createOwnNetwork(): Promise<void> {
    const { engine, place } = this.#parts;
    const body = { Name: place.network, Driver: "bridge", Labels: { [SANDBOX_LABEL]: place.id } };
    const { status, text } = await askEngine(engine, "POST", "/networks/create", JSON.stringify(body));
    if (status !== CREATED) throw new Error(`the engine makes no network: ${text.trim()}`);
    await this.#untilClosed((JSON.parse(text) as Pick<Network, "Id">).Id, place.network);
  }

  /** The policy is for these networks from now on, where nobody else uses them, and for these containers. */
  async #take(
    networks: readonly string[],
    containers: readonly (readonly [string, readonly string[]])[] = [],
  ): Promise<void> {
    const found: Network[] = [];
    for (const name of networks) {
      const network = await this.#askJson<Network>(`/networks/${encodeURIComponent(name)}`);
      if (network === undefined) continue;
      const { Driver: driver = "" } = network;
      if (!HELD_DRIVERS.has(driver))
        throw new Fault("POLICY_NOT_HELD", `Network ${network.Name} is of the driver ${driver}, which cannot be held`, {
          remedy: "Use a bridge network.",
        });
      if (driver === "bridge" && (await this.#isFree(network))) found.push(network);
    }
    await this.#add([...found.map(({ Name: name }) => takenPolicy("network", name)), ...containers]);
    for (const { Id: id, Name: name } of found) await this.#untilClosed(id, name);
  }

  /** Others on a network would be held, too, if it was closed. */
  async #isFree({ Name: name, Containers: containers }: Network): Promise<boolean> {
    const own = new Set((await this.#listOwn()).map(({ Id: id }) => id));
    const others = Object.keys(containers ?? {}).filter((id) => !own.has(id) && !this.names.has(id));
    if (others.length === 0 && name !== DEFAULT_NETWORK) return true;
    this.#note(
      `network ${name} has other containers, so it stays open: what starts there is held some milliseconds later. Use a network of its own`,
    );
    return false;
  }

  /** One change after the other: each has all policies. */
  async #add(policies: readonly (readonly [string, readonly string[]])[]): Promise<void> {
    const changed = this.#changing.then(async () => await this.#change(new Map([...this.#policies, ...policies])));
    this.#changing = changed.catch(() => undefined);
    await changed;
  }

  async #change(next: Policies): Promise<void> {
    if (next.size === this.#policies.size) return;
    try {
      await this.#put(next);
      this.#policies = next;
    } catch (error) {
      // Who cannot be held is as before.
      await this.#put(this.#policies);
      throw error;
    }
  }

  async #put(policies: Policies): Promise<void> {
    const { hold, policyFor } = this.#parts;
    await hold.change({
      policies: Object.fromEntries([...policies].map(([name, scopes]) => [name, policyFor(scopes)])),
    });
  }

  async #untilClosed(id: string, name: string): Promise<void> {
    const { client, isEnforced } = this.#parts;
    if (!isEnforced) return;
    for (const endMs = performance.now() + CLOSED_WITHIN_MS; performance.now() < endMs; await sleep(CLOSED_POLL_MS))
      if ((await client.policies()).closedNetworks.includes(id)) return;
    throw new Fault("POLICY_NOT_HELD", `The kernel does not hold network ${name}`, {
      remedy: "The log of dns11 says why.",
    });
  }

  #isOwn({ Config: config }: Inspected): boolean {
    return config?.Labels?.[SANDBOX_LABEL] === this.#parts.place.id;
  }

  async #listOwn(): Promise<readonly Listed[]> {
    return await this.#list(`${SANDBOX_LABEL}=${this.#parts.place.id}`);
  }

  /** Those that run. */
  async #list(label: string): Promise<readonly Listed[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [label] }));
    return (await this.#askJson(`/containers/json?filters=${filters}`)) ?? [];
  }

  async #inspect(reference: string): Promise<Inspected | undefined> {
    return await this.#askJson<Inspected>(`/containers/${encodeURIComponent(reference)}/json`);
  }

  /** Undefined where there is none: the engine itself says so. */
  async #askJson<T>(path: string): Promise<T | undefined> {
    const { status, text } = await askEngine(this.#parts.engine, "GET", path);
    if (status === OK) return JSON.parse(text) as T;
    if (status === NOT_FOUND) return undefined;
    throw new Fault("ENGINE_AWAY", `The engine answers ${status}: ${text.trim()}`, { remedy: "Look at its log." });
  }

  #note(text: string): void {
    if (this.#noted.has(text)) return;
    this.#noted.add(text);
    this.#parts.onNote(text);
  }
}

interface Volume {
  readonly Name?: string;
  readonly Driver?: string;
  readonly DriverOpts?: VolumeOptions;
}

function checkCreated(volume: Volume, place: SandboxPlace): void {
  requirePlainKeys(volume);
  checkVolume(volume.Driver, volume.DriverOpts, place, `volume ${volume.Name}`);
}

/** The body of an exec, or of an update. */
interface Change {
  readonly Privileged?: boolean;
  readonly RestartPolicy?: { readonly Name?: string } | null;
}

function checkChange(change: Change, name: string): void {
  const { Privileged: isPrivileged, RestartPolicy: restart } = change;
  for (const part of [change, restart ?? {}]) requirePlainKeys(part);
  if (isPrivileged === true)
    throw new Fault("POLICY_NOT_HELD", `A privileged program in ${name} cannot be held`, {
      remedy: "Delete --privileged.",
    });
  if (!["", "no"].includes(restart?.Name ?? ""))
    throw new Fault("POLICY_NOT_HELD", `${name} would start again when nobody holds it`, {
      remedy: "Delete --restart.",
    });
}

/** Engines before Docker 25 let a client of an old version of the API describe the container once more when it starts. */
function checkStart(body: unknown, name: string): void {
  if (Object.keys(body as object).length > 0)
    throw new Fault("POLICY_NOT_HELD", `${name} would start otherwise than it was made`, {
      remedy: "Start it without a body.",
    });
}

/** The name of a policy has fewer characters than what it is for. */
function takenPolicy(kind: "container" | "network", name: string): [string, readonly string[]] {
  const scope = `${kind}=${name}`;
  const hash = createHash("sha256").update(scope).digest("hex").slice(0, HASH_LENGTH);
  const readable = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9_.-]/g, "-")
    .slice(0, READABLE_LENGTH);
  return [`sandbox-${kind}-${readable}-${hash}`, [scope]];
}
