/**
 * Policies that clients make while dns11 runs, each for as long as its request to the control socket is open. They stand beside those
 * of the settings, and as each of a container's policies must allow a name, they can only narrow. When a request ends, what its policies
 * were for is closed until it has ended, unless the client has said otherwise.
 */
import { mkdirSync, rmSync, writeFileSync, constants, openSync, renameSync } from "node:fs";
import { join, dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { PolicyLeaseEnd, PolicyLeaseReply } from "../../../api/policies.ts";
import { Fault, codeOf, isInternalError, reasonOf, reasonWithRemedy } from "../../../base/lib/fault.ts";
import type { ReportEvent } from "../../../base/log/log.ts";
import { readSettingsInWorker } from "../../../config/file/worker.ts";
import { LineRoute, type Holder, type Routes, holderText } from "../../../control/server/http.ts";
import type { ControlPorts } from "../../../control/situation/ports.ts";
import type { PolicyBook } from "../book/policy-book.ts";
import { chosenBy } from "../book/assignment.ts";
import {
  type Policy,
  scopeText,
  ADDRESSES_CHOICES,
  HOST_CHOICES,
  PEERS_CHOICES,
  parseScope,
  POLICY_DEFAULTS,
} from "../model/policy.ts";
import type { EngineCore, RunCore } from "../../contract.ts";
import { readRegular } from "../../../kernel/regular-file.ts";
import { serviceFolder } from "../boot/closed-networks.ts";
import { readRule } from "../model/policy-rule.ts";

const POLICY_LEASE_LIMITS = {
  /** Requests that are open, and their policies: in all, and of one process. */
  leases: 32,
  leasesEach: 8,
  policies: 64,
  /** Policies that have ended, for containers that still run. */
  ended: 256,
  lineBytes: 256 * 1024,
  /** How long a container that is to be closed may take to start. */
  endedKeptMs: 600_000,
  /** How long is waited until the kernel holds containers. */
  heldMs: 10_000,
} as const;

/** No name of the settings is like this. */
const PREFIX = "lease/";
/** Nor one that a client chooses. */
const ENDED = "#";
const HELD_POLL_MS = 20;
const ENDS: readonly unknown[] = ["closed", "open"] satisfies PolicyLeaseEnd[];
const TOO_LONG = `The line is longer than ${POLICY_LEASE_LIMITS.lineBytes} bytes: send less in one line`;

/** `engine` is undefined in a KIND node, of which nothing is learned: it has no labels. */
export function openLeases(
  book: PolicyBook,
  { folder, onEvent }: Pick<RunCore, "folder" | "onEvent">,
  engine: () => EngineCore | undefined,
): PolicyLeases {
  return new PolicyLeases({
    book,
    folder,
    onEvent,
    learnLabel: async (key) => await engine()?.learnLabel(key),
    onFirst: () => engine()?.updateViews(),
  });
}

export function leaseRoutes(leases: PolicyLeases, { holderOf }: Pick<ControlPorts, "holderOf">): Routes {
  return {
    "POST /v1/policies": new LineRoute(POLICY_LEASE_LIMITS.lineBytes, ({ lines, socket }) => {
      const lease = leases.open(holderOf(socket));
      socket.once("close", () => leases.end(lease));
      return answers(lines, leases, lease);
    }),
  };
}

async function* answers(
  lines: AsyncIterator<string | undefined>,
  leases: PolicyLeases,
  lease: Lease,
): AsyncGenerator<PolicyLeaseReply, void> {
  try {
    for (let line = 1; ; line++) {
      const { value, done } = await lines.next();
      if (done === true) return;
      if (value === undefined) yield { line, error: TOO_LONG, code: "BAD_POLICY" };
      else yield { line, ...(await leases.handle(lease, value)) };
    }
  } finally {
    leases.end(lease);
  }
}

interface Lease {
  readonly number: number;
  readonly holder: Holder;
  policies: readonly Policy[];
  after: PolicyLeaseEnd;
  /** Undefined while its request is open. */
  endedMs: number | undefined;
}

interface LeasesParts {
  readonly book: Pick<PolicyBook, "setLeased" | "subjects" | "heldOf" | "policies">;
  readonly folder: string;
  readonly onEvent: ReportEvent;
  /** Resolves when the label with this key is known of every container. */
  readonly learnLabel: (key: string) => Promise<void>;
  /** There was no policy at all, and now there is one, or the other way. */
  readonly onFirst: () => void;
  readonly now?: () => number;
}

export class PolicyLeases {
  readonly #parts: LeasesParts;
  readonly #now: () => number;
  readonly #store: LeaseStore;
  readonly #leases = new Set<Lease>();
  #last = 0;
  #isSynced = false;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;
  /** Policies are read one after the other: each takes a thread. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(parts: LeasesParts) {
    this.#parts = parts;
    this.#now = parts.now ?? ((): number => performance.now());
    this.#store = new LeaseStore(parts.folder);
    this.readAgain();
  }

  /** What the file closes and this process does not know of is closed. */
  readAgain(): void {
    const known = [...this.#leases].flatMap(({ policies }) => policies);
    try {
      const missing = this.#store.read().filter((policy) => !known.some((each) => isSamePolicy(each, policy)));
      for (const policy of missing) this.#leases.add(this.#endedBefore(policy));
      if (missing.length > 0) this.#apply();
    } catch (error) {
      this.#parts.onEvent({ reason: reasonWithRemedy(error) }, "cannot read for whom policies had ended", "warn");
    }
  }

  /** Policies in force. */
  get count(): number {
    return this.#inForce().length;
  }

  open(holder: Holder): Lease {
    const all = [...this.#leases].filter(({ endedMs }) => endedMs === undefined);
    const own = all.filter((each) => each.holder.pid === holder.pid);
    if (all.length >= POLICY_LEASE_LIMITS.leases || own.length >= POLICY_LEASE_LIMITS.leasesEach) {
      const whose = own.length >= POLICY_LEASE_LIMITS.leasesEach ? ` by ${holderText(holder)}` : "";
      throw new Fault("TOO_MANY_LEASES", `${whose === "" ? all.length : own.length} leases are open${whose}`, {
        remedy: "End one of them.",
      });
    }
    const lease: Lease = { number: ++this.#last, holder, policies: [], after: "closed", endedMs: undefined };
    this.#leases.add(lease);
    return lease;
  }

  /** Puts the policies of a line into force in place of those of the line before; a mistake leaves them. */
  async handle(lease: Lease, text: string): Promise<LineResult> {
    try {
      const fields = fieldsOf(text);
      const { policies, after = "closed" } = fields;
      const isOnlyEnd = policies === undefined && fields.after !== undefined;
      if (isOnlyEnd && lease.policies.length > 0) return this.#changeEnd(lease, after);
      const read = await this.#read(policies, lease);
      this.#admit(lease, read);
      await Promise.all(labelsOf(read).map(async (key) => await this.#parts.learnLabel(key)));
      if (lease.endedMs !== undefined || this.#isClosed)
        throw new Fault("LEASE_ENDED", "The lease has ended", { remedy: "Open another one." });
      this.#admit(lease, read);
      this.#keep(lease, read, after);
      [lease.policies, lease.after] = [read, after];
      this.#replaceEnded(read);
      this.#apply();
      this.#note(lease, "a client has made a policy");
      const notHeld = await this.#notHeld(read);
      return { policies: read.map(({ name }) => name), ...(notHeld.length > 0 && { notHeld }) };
    } catch (error) {
      if (isInternalError(error)) throw error;
      return { error: reasonWithRemedy(error), code: codeOf(error) ?? "BAD_POLICY" };
    }
  }

  /** A line without policies leaves those that there are. */
  #changeEnd(lease: Lease, after: PolicyLeaseEnd): LineResult {
    this.#keep(lease, lease.policies, after);
    lease.after = after;
    return { policies: lease.policies.map(({ name }) => name) };
  }

  /** Its request has ended. */
  end(lease: Lease): void {
    if (lease.endedMs !== undefined || !this.#leases.has(lease)) return;
    // Another process has the leases, or nobody: what is written stays.
    if (this.#isClosed) return;
    lease.endedMs = this.#now();
    lease.policies = lease.policies.map((policy) => this.#renamed(policy, lease));
    if (lease.policies.length === 0 || lease.after === "open") this.#leases.delete(lease);
    else this.#dropSame(lease);
    if (lease.policies.length === 0) return;
    this.#apply();
    this.#note(lease, `the policy of a client has ended ${lease.after}`);
    this.containersChanged();
  }

  synced(): void {
    this.#isSynced = true;
    this.containersChanged();
  }

  /** What had been closed for nobody that is left is forgotten, in a while: a container may be about to start. */
  containersChanged(): void {
    const ended = [...this.#leases].filter(({ endedMs }) => endedMs !== undefined);
    if (ended.length === 0 || !this.#isSynced || this.#isClosed) return;
    const nowMs = this.#now();
    const subjects = [...this.#parts.book.subjects()];
    let nextMs = Number.POSITIVE_INFINITY;
    for (const lease of ended) {
      const isUsed = lease.policies.some((policy) => subjects.some((each) => chosenBy(each, policy) !== undefined));
      // From when it last was for somebody: a container that is started again stays closed.
      if (isUsed) lease.endedMs = nowMs;
      const leftMs = (lease.endedMs ?? nowMs) + POLICY_LEASE_LIMITS.endedKeptMs - nowMs;
      if (leftMs > 0) nextMs = Math.min(nextMs, leftMs);
      else this.#leases.delete(lease);
    }
    clearTimeout(this.#timer);
    if (nextMs < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.containersChanged(), nextMs).unref();
    if (ended.every((lease) => this.#leases.has(lease))) return;
    this.#apply();
    try {
      this.#store.write(this.#closing());
    } catch (error) {
      // It still names those that are gone.
      this.#parts.onEvent({ reason: reasonOf(error) }, "cannot write for whom policies have ended", "warn");
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  async #read(policies: unknown, lease: Lease): Promise<readonly Policy[]> {
    const reading = this.#reading.then(async () => await this.#readPolicies(policies, lease));
    this.#reading = reading.catch(() => undefined);
    return await reading;
  }

  /** By what reads the settings, so that a policy means the same and its mistakes are named in the same words. */
  async #readPolicies(written: unknown, { number, holder }: Lease): Promise<readonly Policy[]> {
    const { folder } = this.#parts;
    const path = join(folder, `policy-lease-${number}.json`);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    try {
      writeFileSync(path, JSON.stringify({ version: 1, policies: written }), { mode: 0o600 });
      const { values } = await readSettingsInWorker(path);
      const where = `lease of ${holderText(holder)}`;
      const numbered = (rules: Policy["allow"]): Policy["allow"] =>
        rules.map((rule, index) => ({ ...rule, line: index + 1 }));
      return (values.policies ?? []).map((policy): Policy => ({
        ...policy,
        name: `${PREFIX}${policy.name}`,
        ...{ where, file: where },
        allow: numbered(policy.allow),
        deny: numbered(policy.deny),
        isLeased: true,
      }));
    } catch (error) {
      if (isInternalError(error)) throw error;
      // The file is of no interest to whoever has written the line.
      throw badPolicy(reasonOf(error).replaceAll(new RegExp(`${path}:\\d+:\\d+: `, "g"), ""));
    } finally {
      rmSync(path, { force: true });
    }
  }

  #admit(lease: Lease, policies: readonly Policy[]): void {
    if (policies.length === 0) throw badPolicy("The line has no policies");
    const without = policies.find(({ scopes }) => scopes.length === 0);
    if (without !== undefined) throw badPolicy(`${without.name} has no "for": nobody would have the policy`);
    const others = [...this.#leases].filter((each) => each !== lease && each.endedMs === undefined);
    const taken = others.flatMap((each) => each.policies);
    const same = policies.find(({ name }) => taken.some((each) => each.name === name));
    if (same !== undefined)
      throw new Fault(
        "BAD_POLICY",
        `Another lease has a policy ${same.name} (${taken.find(({ name }) => name === same.name)?.where ?? ""})`,
        {
          remedy: "Use another name.",
        },
      );
    const left = [...this.#leases].filter(({ endedMs }) => endedMs !== undefined).flatMap((each) => each.policies);
    if (left.length >= POLICY_LEASE_LIMITS.ended)
      throw new Fault("TOO_MANY_LEASES", `${left.length} policies have ended and keep containers closed`, {
        remedy: "End these containers, or give policies for the same containers the same name.",
      });
    if (taken.length + policies.length > POLICY_LEASE_LIMITS.policies)
      throw new Fault("TOO_MANY_LEASES", `Clients have ${taken.length} policies`, { remedy: "End one of them." });
  }

  /** A client that comes back, after dns11 was replaced for example, goes on with what had been closed for it. */
  #replaceEnded(policies: readonly Policy[]): void {
    for (const lease of this.#leases) {
      if (lease.endedMs === undefined) continue;
      lease.policies = lease.policies.filter((ended) => !policies.some((each) => isSamePolicy(each, ended)));
      if (lease.policies.length === 0) this.#leases.delete(lease);
    }
  }

  /** Of those that have ended, one is enough for the same containers. */
  #dropSame(lease: Lease): void {
    for (const other of this.#leases) {
      if (other === lease || other.endedMs === undefined) continue;
      other.policies = other.policies.filter((each) => !lease.policies.some((own) => closesSame(own, each)));
      if (other.policies.length === 0) this.#leases.delete(other);
    }
  }

  /**
   * Waits until the kernel holds the connections of containers that run to what enforces addresses. Returns those that it does not
   * hold, each with the reason.
   */
  async #notHeld(policies: readonly Policy[]): Promise<string[]> {
    const { book } = this.#parts;
    const enforcing = policies.filter(({ addresses, mode }) => addresses === "enforce" && mode === "enforce");
    if (enforcing.length === 0) return [];
    const endMs = this.#now() + POLICY_LEASE_LIMITS.heldMs;
    for (;;) {
      const meant = [...book.subjects()].filter((each) =>
        enforcing.some((policy) => chosenBy(each, policy) !== undefined),
      );
      const notYet = meant.filter(({ ownerId }) => book.heldOf(ownerId)?.state !== "enforced");
      const isWaiting = notYet.some(({ ownerId }) => (book.heldOf(ownerId)?.state ?? "pending") === "pending");
      if (!isWaiting || this.#now() >= endMs)
        return notYet.map(({ name, ownerId }) => `${name}: ${book.heldOf(ownerId)?.reason ?? "not held yet"}`);
      await sleep(HELD_POLL_MS);
    }
  }

  /** A client may use the name again at once, for other containers. */
  #renamed(policy: Policy, { number }: Lease): Policy {
    if (policy.name.includes(ENDED)) return policy;
    return { ...policy, name: `${policy.name}${ENDED}${Date.now().toString(36)}-${number}` };
  }

  #inForce(): Policy[] {
    return [...this.#leases].flatMap(({ policies, endedMs }) =>
      endedMs === undefined ? policies : policies.map(closedPolicy),
    );
  }

  #apply(): void {
    const { book, onFirst } = this.#parts;
    const hadSome = book.policies.length > 0;
    book.setLeased(this.#inForce());
    if (hadSome !== book.policies.length > 0) onFirst();
  }

  /** Whom to close, should dns11 be gone before the client is: written before the policies are in force. */
  #keep(lease: Lease, policies: readonly Policy[], after: PolicyLeaseEnd): void {
    const others = this.#closing(lease).filter((other) => !policies.some((each) => isSamePolicy(each, other)));
    try {
      this.#store.write([...others, ...(after === "closed" ? policies : [])]);
    } catch (error) {
      throw new Fault("POLICY_LEASES", `"${this.#store.path}" cannot be written`, {
        remedy: "Make room there: without it, nobody would be closed after a crash.",
        cause: error,
      });
    }
  }

  #closing(but?: Lease): Policy[] {
    const all = [...this.#leases].filter((each) => each !== but && each.after === "closed");
    return all.flatMap(({ policies }) => policies);
  }

  #endedBefore(policy: Policy): Lease {
    const holder = { pid: 0, command: "" };
    const lease: Lease = { number: ++this.#last, holder, policies: [], after: "closed", endedMs: this.#now() };
    lease.policies = [this.#renamed(policy, lease)];
    return lease;
  }

  #note({ holder, policies, after }: Lease, what: string): void {
    for (const { name, scopes, mode } of policies) {
      const about = { policy: name, by: holderText(holder), for: scopes.map(scopeText).join(" "), mode, after };
      this.#parts.onEvent(about, what, "warn");
    }
  }
}

function badPolicy(what: string): Fault {
  return new Fault("BAD_POLICY", what, { remedy: "Write it as in the settings file: docs/policy.md" });
}

function labelsOf(policies: readonly Policy[]): string[] {
  const scopes = policies.flatMap((each) => each.scopes);
  return [...new Set(scopes.flatMap((scope) => (scope.kind === "label" ? [scope.key] : [])))];
}

/** Whether a client has made both by the same name, for the same containers; one may have ended. */
function isSamePolicy(one: Policy, other: Policy): boolean {
  const of = ({ name, scopes }: Policy): unknown[] => [name.split(ENDED, 1), scopes.map(scopeText).toSorted()];
  return isDeepStrictEqual(of(one), of(other));
}

/** Whether what is left of two policies is the same. */
function closesSame(one: Policy, other: Policy): boolean {
  const left = ({ scopes, deny, peers, host, addresses }: Policy): unknown[] => [
    scopes.map(scopeText).toSorted(),
    deny.map(({ text }) => text).toSorted(),
    ...[peers, host, addresses],
  ];
  return isDeepStrictEqual(left(one), left(other));
}

type LineResult =
  | { readonly policies: readonly string[]; readonly notHeld?: readonly string[] }
  | { readonly error: string; readonly code: string };

function fieldsOf(text: string): { readonly policies: unknown; readonly after: PolicyLeaseEnd | undefined } {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch (error) {
    throw badPolicy(`The line is no JSON: ${reasonOf(error)}`);
  }
  const { policies, after, ...more } = (read ?? {}) as Readonly<Record<string, unknown>>;
  const [unknown] = Object.keys(more);
  if (unknown !== undefined) throw badPolicy(`Unknown key "${unknown}": a line has "policies" and "after"`);
  if (after !== undefined && !ENDS.includes(after)) throw badPolicy(`Invalid "after": use "closed" or "open"`);
  return { policies, after: after as PolicyLeaseEnd | undefined };
}

const FILE = "policy-leases.json";
const VERSION = 1;
const BYTES_MAX = 1024 * 1024;

/**
 * For whom there are leases that end closed, so that they are closed after a crash and a restart of the machine, too. Only what closes is
 * kept: a mistake in the file opens nothing that it does not name.
 */
export class LeaseStore {
  readonly #path: string;
  #written = "";

  /** `folder` of the run, where the service has none that outlives a restart of the machine. */
  constructor(folder: string) {
    this.#path = join(serviceFolder() ?? folder, FILE);
  }

  get path(): string {
    return this.#path;
  }

  /** Throws a Fault that says what is wrong with the file. */
  read(): Policy[] {
    let text;
    try {
      text = readRegular((flags) => openSync(this.#path, flags | constants.O_NOFOLLOW), BYTES_MAX).toString();
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw this.#fault(error);
    }
    try {
      return policiesIn(JSON.parse(text));
    } catch (error) {
      throw this.#fault(error);
    }
  }

  /** Throws what the system says. */
  write(policies: readonly Policy[]): void {
    const kept = policies.map(({ name, where, scopes, deny, peers, host, addresses }) => ({
      ...{ name, where, peers, host, addresses },
      for: scopes.map(scopeText),
      deny: deny.map((rule) => rule.text),
    }));
    const text = `${JSON.stringify({ version: VERSION, policies: kept }, undefined, 1)}\n`;
    // What would not be read is not written.
    if (Buffer.byteLength(text) > BYTES_MAX) throw new Error(`it would have more than ${BYTES_MAX} bytes`);
    if (text === this.#written) return;
    if (policies.length === 0) rmSync(this.#path, { force: true });
    else {
      mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600, flush: true });
      renameSync(`${this.#path}.new`, this.#path);
    }
    this.#written = text;
  }

  #fault(error: unknown): Fault {
    return new Fault("POLICY_LEASES", `"${this.#path}" cannot be used`, {
      remedy: "Remove it. Until then, containers whose leases had ended closed are held by the settings alone.",
      cause: error,
    });
  }
}

function policiesIn(read: unknown): Policy[] {
  const { version, policies } = (read ?? {}) as { readonly version?: unknown; readonly policies?: unknown };
  if (version !== VERSION || !Array.isArray(policies))
    throw new Error(`it is no list of policies of version ${VERSION}`);
  return policies.map((each: unknown) => {
    const fields = (each ?? {}) as Readonly<Record<string, unknown>>;
    const text = (key: string): string => {
      const value = fields[key];
      if (typeof value !== "string") throw new Error(`a policy has no ${key}`);
      return value;
    };
    const choice = <T extends string>(key: string, choices: readonly T[]): T => {
      const found = choices.find((word) => word === fields[key]);
      if (found === undefined) throw new Error(`invalid ${key} of ${text("name")}`);
      return found;
    };
    const list = (key: string): readonly unknown[] => (Array.isArray(fields[key]) ? (fields[key] as unknown[]) : []);
    return closedPolicy({
      ...POLICY_DEFAULTS,
      name: text("name"),
      where: text("where"),
      file: text("where"),
      scopes: list("for").map((scope) => {
        const parsed = typeof scope === "string" ? parseScope(scope) : undefined;
        if (parsed === undefined) throw new Error(`invalid choice of containers of ${text("name")}`);
        return parsed;
      }),
      peers: choice("peers", PEERS_CHOICES),
      host: choice("host", HOST_CHOICES),
      addresses: choice("addresses", ADDRESSES_CHOICES),
      mode: "enforce",
      allow: [],
      deny: list("deny").map((rule, index) => {
        if (typeof rule !== "string") throw new Error(`invalid rule of ${text("name")}`);
        return { ...readRule(rule), line: index + 1 };
      }),
    });
  });
}

/** What is left of a policy when its lease has ended: nothing is forwarded, and what it denied of this machine stays denied. */
function closedPolicy(policy: Omit<Policy, "isLeased">): Policy {
  return { ...policy, mode: "enforce", allow: [], isLeased: true };
}
