/**
 * Outlook: which networks a container is told addresses of although it is not on them. Only addresses that have a route
 * from the container: none of an internal network, none to a container without a gateway of that family.
 */
import { COMPOSE_LABEL } from "../../base/model/compose-labels.ts";
import type { VisibleSetting } from "../../base/model/visible-setting.ts";
import { type ContainerFact, type NetworkFact, isUserDefined } from "../registry/fact.ts";
import { gatewaysOf } from "./gateways.ts";

export interface Outlook {
  readonly hasIpv4: boolean;
  readonly hasIpv6: boolean;
  /** False for the container's own networks. */
  sees(network: NetworkFact): boolean;
}

/** undefined for a container that sees nothing but its own networks. */
export function outlookOf(
  container: ContainerFact,
  setting: VisibleSetting,
  networkOf: (id: string) => NetworkFact | undefined,
): Outlook | undefined {
  if (setting === "network") return undefined;
  // Of the container's creator: an image could claim any project.
  const project = setting === "all" ? undefined : container.labels[COMPOSE_LABEL.project];
  if (setting === "project" && project === undefined) return undefined;
  const { ipv4, ipv6 } = gatewaysOf(container, networkOf);
  if (ipv4 === undefined && ipv6 === undefined) return undefined;
  const own = new Set(container.endpoints.map(({ networkId }) => networkId));
  return {
    hasIpv4: ipv4 !== undefined,
    hasIpv6: ipv6 !== undefined,
    sees: ({ id, name, isInternal, scope, project: maker }) =>
      !own.has(id) &&
      !isInternal &&
      scope === "local" &&
      isUserDefined(name) &&
      (project === undefined || maker === project),
  };
}
