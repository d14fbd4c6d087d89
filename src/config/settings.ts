/**
 * Settings of one run, checked and complete: what flags, environment, settings file and defaults came to together.
 */
import type { Behaviour } from "../model/behaviour.ts";
import type { QueriesPolicy } from "../model/asked-query.ts";
import type { KindPolicy } from "../model/kind-policy.ts";
import type { RouteRules } from "../model/route-rules.ts";
import type { UpstreamPolicy } from "../model/upstream-policy.ts";
import type { LogLevel } from "../observe/log.ts";
import type { OnlyFilter } from "./only.ts";

/** What the settings file may say, and reading it again may change. */
export interface Settings {
  readonly behaviour: Behaviour;
  readonly isStrict: boolean;
  readonly upstream: UpstreamPolicy;
  /** Who is asked, beside what Docker would do. */
  readonly routes: RouteRules;
  readonly only: readonly OnlyFilter[];
  /** Which containers are KIND nodes, and how their pods reach us. */
  readonly kind: KindPolicy;
  /** The host's resolv.conf, in the engine's mount namespace, where it is not in its usual place. */
  readonly resolvConf: string | undefined;
  readonly logLevel: LogLevel;
  /** What is kept and told of what containers ask. */
  readonly queries: QueriesPolicy;
  /** Every key of the settings file: what counts, as the file would say it, and who said so. */
  readonly origins: Origins;
}

export interface RunSettings extends Settings {
  /** -H as it was given. */
  readonly host: string | undefined;
  readonly stateDir: string;
  /** The engine's process, where the socket does not tell it. */
  readonly enginePid: number | undefined;
  readonly isBatching: boolean;
  /** The settings file. */
  readonly config: string | undefined;
}

/** Who said what counts; whoever stands first here goes before the others. */
export type Source = "flag" | "environment" | "file" | "default";

export interface Origin {
  readonly value: unknown;
  readonly source: Source;
}

export type Origins = Readonly<Record<string, Origin>>;

/** Keys under which something else counts now, each as `KEY: BEFORE -> NOW`. */
export function changedKeys(before: Origins, now: Origins): string[] {
  return Object.entries(now).flatMap(([key, { value }]) => {
    const [old, young] = [before[key]?.value, value].map((each) => JSON.stringify(each) ?? "");
    return old === young ? [] : [`${key}: ${old ?? ""} -> ${young ?? ""}`];
  });
}

export const DEFAULT_STATE_DIR = "/run/dns11";
