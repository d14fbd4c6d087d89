import { constants, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { Fault, codeOf, reasonOf } from "../../base/lib/fault.ts";
import { readRegular } from "../../kernel/regular-file.ts";
import { serviceFolder } from "../../policy/boot/closed-networks-file.ts";
import { POLICY_DEFAULTS } from "../../policy/model/policy-defaults.ts";
import { readRule } from "../../policy/model/policy-rule.ts";
import {
  ADDRESSES_CHOICES,
  HOST_CHOICES,
  PEERS_CHOICES,
  type Policy,
  parseScope,
  scopeText,
} from "../../policy/model/policy.ts";

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
    return new Fault("POLICY_LEASES", `"${this.#path}" cannot be used: ${reasonOf(error)}`, {
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
export function closedPolicy(policy: Omit<Policy, "isLeased">): Policy {
  return { ...policy, mode: "enforce", allow: [], isLeased: true };
}
