/**
 * IptablesTool: runs iptables-legacy-save and -restore in a namespace, which nsenter enters. There is no other way to write
 * these tables: the kernel takes a whole table in a format that only these programs know.
 */
import { type SpawnOptions, spawn } from "node:child_process";

import { LIMITS } from "../../base/limits.ts";
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { type Saved, readSaved } from "./iptables-saved.ts";
import type { IpFamily } from "./plan.ts";

/** Searched after PATH, which often lacks the sbin folders. */
const SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/bin:/bin";
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
  static async find(): Promise<IptablesTool> {
    const candidates: Readonly<Record<IpFamily, string>>[] = [
      { ip: "iptables-legacy", ip6: "ip6tables-legacy" },
      { ip: "iptables", ip6: "ip6tables" },
    ];
    for (const prefix of candidates) {
      const { stdout } = await runProgram(prefix.ip, ["--version"]);
      const [, ...numbers] = /v(\d+)\.(\d+)\.(\d+)/.exec(stdout) ?? [];
      if (numbers.length === 0 || stdout.includes("nf_tables")) continue;
      return new IptablesTool(prefix, isAtLeast(numbers.map(Number), FIRST_WITH_WAIT));
    }
    throw new Fault("NO_IPTABLES", "iptables-legacy not found", {
      remedy: INSTALL_REMEDY,
    });
  }

  /** Of all rules of the tables in use. */
  async save(family: IpFamily, namespace: number): Promise<Saved> {
    return await readSaved(await run(`${this.#prefix[family]}-save`, ["-c"], namespace, ""));
  }

  /** Changes tables, each of them atomically. */
  async restore(family: IpFamily, namespace: number, text: string): Promise<void> {
    const waitOption = this.#canWait ? ["-w", String(LIMITS.iptablesLockSeconds)] : [];
    await run(`${this.#prefix[family]}-restore`, ["--noflush", ...waitOption], namespace, text);
  }
}

let foundTool: Promise<IptablesTool> | undefined;

/** Searched at first use: most machines never need it. */
export async function iptablesTool(): Promise<IptablesTool> {
  foundTool ??= IptablesTool.find();
  try {
    return await foundTool;
  } catch (error) {
    // It may be installed meanwhile.
    foundTool = undefined;
    throw error;
  }
}

/** `namespace` is a descriptor. */
async function run(command: string, args: readonly string[], namespace: number, input: string): Promise<string> {
  const words = ["--net=/proc/self/fd/3", "--", command, ...args];
  const { error, end, stdout, stderr } = await runProgram("nsenter", words, { input, namespace });
  if (end === 0) return stdout;
  if (codeOf(error) === "ENOENT") {
    throw new Fault("NO_IPTABLES", 'Program not found: "nsenter"', { remedy: INSTALL_REMEDY });
  }
  const message = stderr
    .trim()
    .replaceAll(/\s*\n\s*/g, "; ")
    .slice(0, STDERR_CHARS_MAX);
  throw new Fault("IPTABLES", `${command}: ${message || (error?.message ?? `ended by ${end}`)}`);
}

interface ProgramResult {
  readonly stdout: string;
  readonly stderr: string;
  /** The exit code, or the signal that ended it. */
  readonly end: number | string | null;
  readonly error: Error | undefined;
}

/** Runs a program to its end, which comes in time: it is killed otherwise, and when it prints too much. */
async function runProgram(
  program: string,
  args: readonly string[],
  { input = "", namespace }: { readonly input?: string; readonly namespace?: number } = {},
): Promise<ProgramResult> {
  return await new Promise((resolve) => {
    const child = spawn(program, args, options(namespace));
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    let bytes = 0;
    let failure: Error | undefined;
    const most = LIMITS.iptablesSavedBytes;
    for (const name of ["stdout", "stderr"] as const) {
      child[name]?.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= most) return void output[name].push(chunk);
        failure ??= new Error(`it prints more than ${most / 2 ** 20} MiB`);
        child.kill("SIGKILL");
      });
    }
    // One that ends early does not read its input.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
    child.on("error", (error) => (failure = error));
    child.on("close", (code, signal) => {
      const [stdout, stderr] = [output.stdout, output.stderr].map((chunks) => Buffer.concat(chunks).toString()) as [
        string,
        string,
      ];
      resolve({ stdout, stderr, end: signal ?? code, error: failure });
    });
  });
}

function options(namespace: number | undefined): SpawnOptions {
  const path = [process.env["PATH"], SYSTEM_FOLDERS].filter(Boolean).join(":");
  return {
    stdio: ["pipe", "pipe", "pipe", ...(namespace === undefined ? [] : [namespace])],
    timeout: LIMITS.iptablesMs,
    killSignal: "SIGKILL",
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
