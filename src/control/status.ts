/**
 * Status: what `GET /v1/status` tells and `dns11 status` shows. Every running container is in it, served or not.
 */
import type { Origins } from "../config/settings.ts";
import type { Attachment } from "../container/attach/attachment.ts";
import type { Decision } from "../container/attach/decision.ts";
import type { Repaired } from "../container/attach/reconciler.ts";
import type { ContainerFact } from "../container/registry/fact.ts";
import type { CapabilitySets } from "../kernel/capabilities.ts";
import type { RuleTier } from "../model/rule-tier.ts";
import { serverText } from "../model/server-text.ts";
import type { NodeReport } from "../container/kind/node-mode.ts";
import type { View } from "../model/view.ts";
import { presentation } from "../dns/name.ts";

export interface ContainerStatus {
  readonly id: string;
  readonly name: string;
  readonly isPaused: boolean;
  readonly networks: readonly string[];
  /** attached and verifying are served by dns11, all others by Docker, if at all. */
  readonly state: "attached" | "verifying" | "opening" | "failed" | "left-alone" | "quarantined";
  /** A word for programs and a sentence for people, where it is not attached. */
  readonly code?: string;
  readonly reason?: string;
  readonly warning?: string;
  /** What may keep queries from us, where that is why it failed. */
  readonly culprits?: readonly string[];
  /** Device and inode of the network namespace. */
  readonly namespace?: string;
  readonly ports?: { readonly udp: number; readonly tcp: number };
  readonly since?: string;
  readonly verified?: string;
  /** What it is to its pods, where it is a KIND node that we serve. */
  readonly node?: NodeReport;
  readonly upstreams?: readonly string[];
  /** How often rules of ours that somebody had taken away were put back; not there with owned tables. */
  readonly repairs?: number;
  readonly counters?: Readonly<Record<string, number>>;
}

export interface Status {
  readonly version: string;
  readonly pid: number;
  readonly since: string;
  readonly character: "strict" | "better";
  /** How the rules are held: owned tables go with the process, the others stay when it is killed. */
  readonly tier: RuleTier;
  /** null inside a node, where there is none. */
  readonly engine: {
    readonly id: string;
    readonly version: string;
    readonly address: string;
    readonly isConnected: boolean;
  } | null;
  /** The settings file. */
  readonly config: string | null;
  /** What counts under each key of the settings file, and who said so. */
  readonly settings: Origins;
  /** Every running container has been looked at, and is served or its refusal known. */
  readonly isReady: boolean;
  readonly memoryBytes: number;
  /** What its threads may do, those that are alike together. */
  readonly capabilities: readonly CapabilitySets[];
  /** Where metrics are served beside the control socket. */
  readonly metrics: string | null;
  readonly containers: readonly ContainerStatus[];
}

/** What `POST /v1/repair` tells. */
export interface RepairAnswer {
  readonly name: string;
  /** Its rules were made anew, it was attached anew or for the first time, it cannot be, or nobody wants it served. */
  readonly outcome: Repaired | "released" | "not-served";
}

export function containerStatus(
  fact: ContainerFact,
  decision: Decision,
  attachment: Attachment | undefined,
  view: View,
  node: NodeReport | undefined,
): ContainerStatus {
  const base = {
    id: fact.id,
    name: fact.name,
    isPaused: fact.isPaused,
    networks: fact.endpoints.map(({ networkName }) => networkName),
    ...(decision.warning !== undefined && { warning: decision.warning }),
  };
  if (decision.kind === "leave") {
    const state = decision.code === "quarantined" ? "quarantined" : "left-alone";
    return { ...base, state, code: decision.code, reason: decision.reason };
  }
  return {
    ...base,
    ...attachmentStatus(attachment),
    ...(node !== undefined && { node }),
    upstreams: upstreamsOf(view),
  };
}

function attachmentStatus(
  attachment: Attachment | undefined,
): Pick<ContainerStatus, "state"> & Partial<ContainerStatus> {
  const state = attachment?.state;
  if (attachment === undefined || state === undefined || state.kind === "opening" || state.kind === "closed") {
    return { state: "opening" };
  }
  const { namespaceId, counters, repairs } = attachment;
  const [listening] = attachment.listening;
  const common = {
    state: state.kind,
    ...(namespaceId !== undefined && { namespace: namespaceId }),
    ...(listening !== undefined && { ports: { udp: listening.udpPort, tcp: listening.tcpPort } }),
    ...(repairs > 0 && { repairs }),
    ...(counters !== undefined && { counters }),
  };
  switch (state.kind) {
    case "verifying":
      return { ...common, since: iso(state.sinceMs) };
    case "attached":
      return { ...common, since: iso(state.sinceMs), verified: iso(state.verifiedMs) };
    case "failed":
      return { ...common, since: iso(state.atMs), code: state.code, reason: state.reason, culprits: state.culprits };
  }
}

/** Servers as Docker writes them: `host(ADDRESS)` is asked from the host. Those of a domain stand behind its name. */
function upstreamsOf({ upstreams }: View): string[] {
  return upstreams.routes.toReversed().map(({ suffix, servers, isLocal }) => {
    const who = isLocal ? "nobody" : servers.map((server) => serverText(server)).join(" ") || "none";
    return suffix.length === 0 ? who : `/${presentation(suffix, 0, suffix.length)}/${who}`;
  });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
