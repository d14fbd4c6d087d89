/**
 * NameSource: somebody who knows names, and says what of them each container may see. What it hands out is read by every
 * question of that container, and changes in place when the names change.
 */
import type { VisibleNames } from "../../base/model/visible-names.ts";
import type { ContainerFact } from "../registry/fact.ts";

/** What is different for a KIND node. */
export interface NodeContext {
  /** Where its pods ask us: as servers of the node, it would ask itself. */
  readonly ownAddresses: readonly string[];
  /** What host.docker.internal is in there: nothing, whatever a server says, or an address. */
  readonly hostDockerInternal: "deny" | "forward" | (string & {});
}

export interface NameSource {
  /** Undefined where it has nothing for this container. */
  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames | undefined;
}
