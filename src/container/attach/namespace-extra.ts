import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { Capture } from "../capture/capture.ts";
import type { NamespaceSockets } from "../namespace/sockets.ts";
import type { Protocol } from "../rules/plan.ts";
import type { ProbeResult } from "../rules/probe.ts";

/**
 * What is in served namespaces besides sockets and rules, and answers what it can before queries reach the sockets. Serving never depends on
 * it: where it does not work, the rules lead past it.
 */
export interface NamespaceExtra {
  /** Called in the namespace, before its rules are made. Undefined where there is to be none. */
  open(place: ExtraPlace): ServedExtra | undefined;
}

export interface ExtraPlace {
  readonly containerId: string;
  readonly capture: Capture;
  /** One for each redirect of the capture. */
  readonly pairs: readonly NamespaceSockets[];
  /** That of the process's own queries. */
  readonly mark: number;
  /** Why the process is to answer everything here, if it is. */
  readonly onlyByProcess: string | undefined;
  /** What the previous process's had the keeper hold here. They are closed when `open` has returned. */
  readonly held: readonly number[];
}

export interface ServedExtra {
  /** Which packets the rules lead to it, past connection tracking: it has to bring them to the sockets. */
  readonly untracked: "none" | "probes" | "all";
  /** Descriptors with which it works on while nobody serves, for the keeper. */
  readonly held: readonly number[];
  /** Queries reach the process. */
  serve(namespace: ExtraNamespace): void;
  /** Other addresses are captured from now on. The rules are made anew after it. */
  setCapture(capture: Capture): void;
  /** Rules of others in the namespace have changed. */
  rulesChanged(): void;
  /** The process has been probed. Tries what it adds, and returns the result of the last probe of the process. */
  settle(result: ProbeResult): Promise<ProbeResult>;
  /** A verification has ended. */
  verified(): void;
  /** It is to be tried at the next verification, whatever has failed. */
  retry(): void;
  /** The next process could not take over. */
  takePlace(): void;
  /** The keeper refuses what it does not answer: it answers nothing more, and leads to the sockets until it is closed. */
  leave(): void;
  close(): void;
}

/** The namespace, while it is served. */
export interface ExtraNamespace {
  readonly netns: NetNamespace;
  /** The number of the query side's client. */
  readonly clientNumber: number;
  /** That of the process's socket; undefined where nothing is redirected. */
  readonly udpPort: number | undefined;
  /** Only probes are redirected so far. */
  readonly isTrial: boolean;
  /** Whether it is still served, and not left. */
  readonly isCurrent: boolean;
  /** Has the rules lead to it, or past it, as it is now. */
  replaceRules(): Promise<void>;
  /** Probes the process. */
  probe(protocols: readonly Protocol[]): Promise<ProbeResult>;
  /** What the keeper is to hold has changed. */
  renewHold(): void;
  /** Has the namespace verified soon. */
  verify(): void;
  /** Resolves when `work`, which replaces rules, has ended, or waits for a lock. */
  endOf(work: Promise<unknown>): Promise<void>;
}
