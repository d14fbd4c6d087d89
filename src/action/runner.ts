/**
 * Runner: what the runner of GitHub Actions and a step tell each other. The step reads inputs and what its first half has left from
 * variables, and writes to files that variables name. Lines of its output that begin with `::` are commands to the runner, so text
 * from elsewhere is never printed as it is.
 */
import { appendFileSync } from "node:fs";

import { printable } from "../base/lib/text.ts";

/** The name of the folder where the first half of the step leaves files for the second. */
const FOLDER = "folder";

export type Environment = Readonly<Record<string, string | undefined>>;

export class InputError extends Error {
  override readonly name = "InputError";
}

export interface Inputs {
  /** A version, or an empty text for that of the action. */
  readonly version: string;
  /** The folder of the release, or an empty text for that of GitHub. */
  readonly url: string;
  /** A path, or an empty text for a release. */
  readonly program: string;
  readonly args: readonly string[];
  /** The path of a settings file with policies, or an empty text for none. */
  readonly policy: string;
  /** What they all are; empty as the file says of each. */
  readonly policyMode: "" | "audit" | "enforce";
}

const POLICY_MODES = ["", "audit", "enforce"] as const;

export function readInputs(env: Environment): Inputs {
  const read = (name: string): string => (env[`INPUT_${name}`] ?? "").trim();
  const version = read("VERSION").replace(/^v(?=\d)/, "");
  if (!/^[0-9A-Za-z.~+-]*$/.test(version)) {
    throw new InputError(`version: "${version}" is no version; an example is 0.1.0`);
  }
  const program = read("PROGRAM");
  if (program !== "" && !program.startsWith("/")) throw new InputError(`program: "${program}" is no absolute path`);
  const url = read("URL");
  if (program !== "" && (version !== "" || url !== "")) {
    throw new InputError("program excludes version and url: it is used as it is");
  }
  const lines = read("ARGS").split("\n");
  const args = lines.map((line) => line.trim()).filter((line) => line !== "");
  return { version, url, program, args, ...policyInputs(env, read, args) };
}

function policyInputs(
  env: Environment,
  read: (name: string) => string,
  args: readonly string[],
): Pick<Inputs, "policy" | "policyMode"> {
  const policy = read("POLICY");
  const written = read("POLICY-MODE");
  const policyMode = POLICY_MODES.find((each) => each === written);
  if (policyMode === undefined) throw new InputError(`policy-mode: "${written}" is neither audit nor enforce`);
  if (policy === "" && policyMode !== "") throw new InputError("policy-mode needs policy, the path of a file");
  const isConfigured = args.some((each) => /^--config(?:=|$)/.test(each)) || (env["DNS11_CONFIG"] ?? "") !== "";
  if (policy !== "" && isConfigured)
    throw new InputError(
      "policy excludes another settings file (--config, DNS11_CONFIG): write the policies into that",
    );
  return { policy, policyMode };
}

/** Whether the step has policies. Both halves of it have its inputs. */
export function isPoliced(env: Environment): boolean {
  return (env["INPUT_POLICY"] ?? "").trim() !== "";
}

/** A variable that every runner sets. */
export function variable(env: Environment, name: string): string {
  const value = env[name] ?? "";
  if (value === "") throw new InputError(`${name} is not set: this program is a step of GitHub Actions`);
  return value;
}

/** Before a command that sudo runs: the settings that the step has as variables, which sudo does not pass on. */
export function withVariables(env: Environment): readonly string[] {
  const set = Object.entries(env).filter(([name, value]) => /^DNS11_[A-Z0-9_]+$/.test(name) && value !== undefined);
  return set.length === 0 ? [] : ["env", ...set.map(([name, value]) => `${name}=${value ?? ""}`)];
}

export function saveFolder(env: Environment, folder: string): void {
  appendFileSync(variable(env, "GITHUB_STATE"), `${FOLDER}=${folder}\n`);
}

/** Undefined if the first half did not get as far. */
export function savedFolder(env: Environment): string | undefined {
  return env[`STATE_${FOLDER}`];
}

/** A message at the top of the run, beside those of other steps. */
export function annotation(level: "notice" | "warning" | "error", title: string, text: string): string {
  return `::${level} title=${property(title)}::${data(text)}\n`;
}

/** Text from elsewhere as output: commands in it have no effect. `token` must be new each time. */
export function quoted(text: string, token: string): string {
  const lines = text.split("\n").map(printable).join("\n");
  return `::stop-commands::${token}\n${lines.trimEnd()}\n::${token}::\n`;
}

function data(text: string): string {
  return printable(text).replaceAll("%", "%25");
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
