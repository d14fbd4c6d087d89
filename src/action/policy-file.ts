/**
 * PolicyFile: the settings file that has the policies of a job. dns11 itself checks it before it is started with it. Where the step says the
 * mode, dns11 gets a copy in which only the modes are others, so that lines are those of the file.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { accessSync, constants, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

import { FILES } from "./place.ts";
import { type Environment, InputError, type Inputs, quoted } from "./runner.ts";

/** A mode in a line of its own, as `dns11 policy learn` and the documents write it. */
const MODE_LINE = /^([ \t]+mode:[ \t]*)["']?(?:audit|learn|enforce)["']?(?=[ \t]*(?:#.*)?\r?$)/gm;
const OUTPUT_BYTES_MAX = 2 ** 24;
const SHOWN_MAX = 8_000;

/** The modes of policies, by their names. */
type Modes = Readonly<Record<string, { readonly mode: string }>>;

/** The path of the file as the workflow means it; undefined without one. Throws if it cannot be read. */
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

/** The path of what dns11 is to be started with. Throws if it is no valid settings file with policies. */
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
