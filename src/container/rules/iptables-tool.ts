/**
 * IptablesTool: the programs that read and write the older iptables. There is no other way to write them: the kernel takes
 * a whole table in a form that only these programs know. They are children that end before the call returns, so that
 * whoever is in another namespace stays alone there.
 */
import { spawnSync } from "node:child_process";

import { LIMITS } from "../../base/limits.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { longCalls } from "../../base/lib/long-calls.ts";
import type { IpFamily } from "./plan.ts";

/** A namespace by a descriptor; undefined is the one that the thread is in. */
export type NamespaceFd = number | undefined;

/** Where the programs are when whoever started us did not think of administrators. */
const SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin";
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const STDERR_CHARS_MAX = 300;
/** Older ones neither wait for each other nor know the option. */
const FIRST_WITH_WAIT = [1, 6, 2];
const INSTALL_REMEDY = "Install iptables (and util-linux, for nsenter) where dns11 runs.";

export class IptablesTool {
  readonly #prefix: Readonly<Record<IpFamily, string>>;
  readonly #waits: boolean;

  private constructor(prefix: Readonly<Record<IpFamily, string>>, waits: boolean) {
    this.#prefix = prefix;
    this.#waits = waits;
  }

  /** Newer packages say by the name which iptables they mean; older ones have only this one. */
  static find(): IptablesTool {
    const candidates: Readonly<Record<IpFamily, string>>[] = [
      { ip: "iptables-legacy", ip6: "ip6tables-legacy" },
      { ip: "iptables", ip6: "ip6tables" },
    ];
    for (const prefix of candidates) {
      const { stdout } = spawnSync(prefix.ip, ["--version"], options());
      const [, ...numbers] = /v(\d+)\.(\d+)\.(\d+)/.exec(stdout ?? "") ?? [];
      if (numbers.length === 0 || stdout.includes("nf_tables")) continue;
      return new IptablesTool(prefix, isAtLeast(numbers.map(Number), FIRST_WITH_WAIT));
    }
    throw new Fault("NO_IPTABLES", "There is no iptables of the older kind here (iptables-legacy)", {
      remedy: INSTALL_REMEDY,
    });
  }

  /** All rules of the tables that are in use, as text. */
  save(family: IpFamily, place: NamespaceFd): string {
    return run(`${this.#prefix[family]}-save`, ["-c"], place, "");
  }

  /** Changes tables, each in one step. */
  restore(family: IpFamily, place: NamespaceFd, text: string): void {
    const waiting = this.#waits ? ["-w", String(LIMITS.iptablesLockSeconds)] : [];
    run(`${this.#prefix[family]}-restore`, ["--noflush", ...waiting], place, text);
  }
}

let foundTool: IptablesTool | undefined;

/** Looked for when it is first needed: most machines never need it. */
export function iptablesTool(): IptablesTool {
  foundTool ??= IptablesTool.find();
  return foundTool;
}

function run(command: string, args: readonly string[], place: NamespaceFd, input: string): string {
  const [program, words] =
    place === undefined ? [command, args] : ["nsenter", ["--net=/proc/self/fd/3", "--", command, ...args]];
  longCalls.announce(LIMITS.iptablesMs);
  const { error, status, signal, stdout, stderr } = spawnSync(program, words, {
    ...options(),
    input,
    stdio: ["pipe", "pipe", "pipe", ...(place === undefined ? [] : [place])],
  });
  if (status === 0) return stdout;
  if (codeOf(error) === "ENOENT") {
    throw new Fault("NO_IPTABLES", `There is no program "${program}" here`, { remedy: INSTALL_REMEDY });
  }
  const said = (stderr ?? "")
    .trim()
    .replaceAll(/\s*\n\s*/g, "; ")
    .slice(0, STDERR_CHARS_MAX);
  throw new Fault("IPTABLES", `${command}: ${said || (error?.message ?? `ended by ${signal ?? status}`)}`);
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
    // What it says is read by people, in the language of everything else that we say.
    env: { PATH: path, LC_ALL: "C" },
  };
}

function isAtLeast(numbers: readonly number[], least: readonly number[]): boolean {
  for (const [index, wanted] of least.entries()) {
    const number = numbers[index] ?? 0;
    if (number !== wanted) return number > wanted;
  }
  return true;
}
