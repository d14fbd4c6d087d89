/**
 * Settings of one run, checked and complete: what the command line was turned into.
 */
import type { LogLevel } from "../observe/log.ts";
import type { Behaviour } from "../model/behaviour.ts";
import type { RouteText } from "../model/server-text.ts";
import type { UpstreamPolicy } from "../model/upstream-policy.ts";

export interface RunSettings {
  /** -H as it was given. */
  readonly host: string | undefined;
  readonly behaviour: Behaviour;
  readonly isStrict: boolean;
  readonly upstream: UpstreamPolicy;
  /** Who is asked, beside what Docker would do. */
  readonly routes: RouteSettings;
  readonly only: readonly OnlyFilter[];
  readonly stateDir: string;
  /** The engine's process, where the socket does not tell it. */
  readonly enginePid: number | undefined;
  /** The host's resolv.conf, in the engine's mount namespace, where it is not in its usual place. */
  readonly resolvConf: string | undefined;
  readonly isBatching: boolean;
  readonly logLevel: LogLevel;
}

/** Servers and routes by who they are for. */
export interface RouteSettings {
  readonly everyone: readonly RouteText[];
  /** By the name of a network. */
  readonly networks: ReadonlyMap<string, readonly RouteText[]>;
}

/** `--only label=KEY[=VALUE]` and `--only network=NAME`. */
export type OnlyFilter =
  | { readonly kind: "label"; readonly key: string; readonly value: string | undefined }
  | { readonly kind: "network"; readonly name: string };

export const DEFAULT_STATE_DIR = "/run/dns11";

/** Reads one --only; undefined where it is neither form. */
export function parseOnly(text: string): OnlyFilter | undefined {
  const [, kind, rest] = /^(label|network)=(.+)$/s.exec(text) ?? [];
  if (rest === undefined) return undefined;
  if (kind === "network") return { kind: "network", name: rest };
  const equals = rest.indexOf("=");
  if (equals === 0) return undefined;
  return equals === -1
    ? { kind: "label", key: rest, value: undefined }
    : { kind: "label", key: rest.slice(0, equals), value: rest.slice(equals + 1) };
}
