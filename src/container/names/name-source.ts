/**
 * NameSource: a source of names, and which of them each container can resolve. The Names it returns are read by every
 * query of that container and change in place when the names change.
 */
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../registry/fact.ts";

/** What differs for a KIND node. */
export interface NodeContext {
  /** The addresses at which its pods reach us: used as the node's upstream servers they would be a forwarding loop. */
  readonly ownAddresses: readonly string[];
  /** How host.docker.internal resolves in the node: denied, forwarded, or to this address. */
  readonly hostDockerInternal: "deny" | "forward" | (string & {});
}

export interface NameSource {
  /** Undefined if it has no names for this container. */
  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames | undefined;
}
