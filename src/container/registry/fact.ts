/**
 * Facts: what the engine says, in our words, free of its versions. Everything behind this file decides on facts alone.
 */

import type { SplitLabels } from "./labels.ts";

/** A container on one network. */
export interface EndpointFact {
  /** Another one every time the container joins. */
  readonly endpointId: string;
  readonly networkId: string;
  readonly networkName: string;
  /** The names it answers to there, in Docker's order; the first is the one its addresses point back to. */
  readonly names: readonly string[];
  /** `target:alias` or `target`, as they were typed. */
  readonly links: readonly string[];
  readonly ipv4: string | undefined;
  readonly ipv6: string | undefined;
  readonly ipv4Gateway: string | undefined;
  readonly ipv6Gateway: string | undefined;
  readonly gatewayPriority: number;
}

/** What is known of a container's nameservers. */
export type NameserversFact =
  | {
      /** The list that Docker uses. */
      readonly kind: "listed";
      readonly servers: readonly { readonly from: "host" | "container"; readonly address: string }[];
      readonly isNdotsSet: boolean;
      /** Whether the user gave it to this very container (--dns). */
      readonly isOwn: boolean;
    }
  /** The servers of the host's own file, whichever they are at the time. */
  | { readonly kind: "host"; readonly isNdotsSet: boolean }
  /** Nobody tells. */
  | { readonly kind: "unknown" };

/** A running container. Its `labels` are those that its creator gave; what the image says is apart. */
export interface ContainerFact extends SplitLabels {
  readonly id: string;
  readonly name: string;
  /** Another one for each start. */
  readonly startedAt: string;
  readonly isPaused: boolean;
  readonly pid: number;
  readonly sandboxKey: string;
  readonly networkMode: string;
  /** The engine's path to the container's resolv.conf. */
  readonly resolvConfPath: string | undefined;
  /** What a KIND node's search list is to be, if anybody says. */
  readonly kindSearch: string | undefined;
  /** What the user says that the host is called in there: the address behind host.docker.internal. */
  readonly hostGateway: string | undefined;
  readonly nameservers: NameserversFact;
  readonly endpoints: readonly EndpointFact[];
}

export interface NetworkFact {
  readonly id: string;
  readonly name: string;
  readonly driver: string;
  readonly scope: string;
  readonly isInternal: boolean;
}

/** The networks that have no resolver, whatever they are made of. */
const WITHOUT_RESOLVER = new Set(["bridge", "host", "none", "default"]);

/** Whether a container on this network has Docker's resolver, and a name there. */
export function isUserDefined(networkName: string): boolean {
  return !WITHOUT_RESOLVER.has(networkName);
}
