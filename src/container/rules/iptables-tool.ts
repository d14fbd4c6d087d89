/**
 * IptablesTool: runs iptables-legacy-save and -restore. There is no other way to write these tables: the kernel takes a
 * whole table in a format that only these programs know. They run synchronously, so that the calling thread can stay in
 * another namespace meanwhile.
 */
import { spawnSync } from "node:child_process";

import { LIMITS } from "../../base/limits.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { longCalls } from "../../base/lib/long-calls.ts";
import type { IpFamily } from "./plan.ts";

/** A namespace's descriptor; undefined is the namespace that the thread is in. */
export type NamespaceFd = number | undefined;

/** Searched after PATH, which often lacks the sbin folders. */
const SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin";
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const STDERR_CHARS_MAX = 300;
/** The first version with the option -w, which waits for the xtables lock. */
const FIRST_WITH_WAIT = [1, 6, 2];
const INSTALL_REMEDY = "Install iptables (and util-linux, for nsenter) where dns11 runs.";

export class IptablesTool {
  readonly #prefix: Readonly<Record<IpFamily, string>>;
  readonly #canWait: boolean;

  private constructor(prefix: Readonly<Record<IpFamily, string>>, canWait: boolean) {
    this.#prefix = prefix;
    this.#canWait = canWait;
  }

  /** Newer packages install iptables-legacy under that name; older ones only as iptables. */
  static find(): IptablesTool {
    const candidates: Readonly<Record<IpFamily, string>>[] = [
      { ip: "iptables-legacy", ip6: "ip6tables-legacy" },
      { ip: "iptables", ip6: "ip6tables" },
    ];
    for (const prefix of candidates) {
      longCalls.announce(LIMITS.iptablesMs);
      const { stdout } = spawnSync(prefix.ip, ["--version"], options());
      const [, ...numbers] = /v(\d+)\.(\d+)\.(\d+)/.exec(stdout ?? "") ?? [];
      if (numbers.length === 0 || stdout.includes("nf_tables")) continue;
      return new IptablesTool(prefix, isAtLeast(numbers.map(Number), FIRST_WITH_WAIT));
    }
    throw new Fault("NO_IPTABLES", "iptables-legacy not found", {
      remedy: INSTALL_REMEDY,
    });
  }

  /** All rules of the tables in use. */
  save(family: IpFamily, namespace: NamespaceFd): string {
    return run(`${this.#prefix[family]}-save`, ["-c"], namespace, "");
  }

  /** Changes tables, each of them atomically. */
  restore(family: IpFamily, namespace: NamespaceFd, text: string): void {
    const waitOption = this.#canWait ? ["-w", String(LIMITS.iptablesLockSeconds)] : [];
    run(`${this.#prefix[family]}-restore`, ["--noflush", ...waitOption], namespace, text);
  }
}

let foundTool: IptablesTool | undefined;

/** Searched at first use: most machines never need it. */
export function iptablesTool(): IptablesTool {
  foundTool ??= IptablesTool.find();
  return foundTool;
}

function run(command: string, args: readonly string[], namespace: NamespaceFd, input: string): string {
  const [program, programArgs] =
    namespace === undefined ? [command, args] : ["nsenter", ["--net=/proc/self/fd/3", "--", command, ...args]];
  longCalls.announce(LIMITS.iptablesMs);
  const { error, status, signal, stdout, stderr } = spawnSync(program, programArgs, {
    ...options(),
    input,
    stdio: ["pipe", "pipe", "pipe", ...(namespace === undefined ? [] : [namespace])],
  });
  if (status === 0) return stdout;
  if (codeOf(error) === "ENOENT") {
    throw new Fault("NO_IPTABLES", `Program not found: "${program}"`, { remedy: INSTALL_REMEDY });
  }
  const message = (stderr ?? "")
    .trim()
    .replaceAll(/\s*\n\s*/g, "; ")
    .slice(0, STDERR_CHARS_MAX);
  throw new Fault("IPTABLES", `${command}: ${message || (error?.message ?? `ended by ${signal ?? status}`)}`);
}

function options(): {
  encoding: "utf8";
  timeout: number;
  killSignal: "SIGKILL";
  maxBuffer: number;
  env: NodeJS.ProcessEnv;
} {
  const path = [process.env["PATH"], SYSTEM_FOLDERS].filter(Boolean).join(":");
  return {
    encoding: "utf8",
    timeout: LIMITS.iptablesMs,
    killSignal: "SIGKILL",
    maxBuffer: OUTPUT_BYTES_MAX,
    // Its error messages become part of ours, which are in English.
    env: { PATH: path, LC_ALL: "C" },
  };
}

function isAtLeast(numbers: readonly number[], least: readonly number[]): boolean {
  for (const [index, required] of least.entries()) {
    const number = numbers[index] ?? 0;
    if (number !== required) return number > required;
  }
  return true;
}
