/**
 * Routes: who is asked for the names that nobody here holds, put together for one container from all who have a say. The
 * longest suffix decides; for one suffix who is trusted more counts before who is trusted less (Directory has the order),
 * and what Docker would ask comes last. Servers asked from the host are left out where the container has no way outside:
 * that is decided here, before any cache is looked into.
 */
import { type NamedServer, type RouteText, domainLabels } from "../../base/model/server-text.ts";
import type { Route, Server } from "../../base/model/view.ts";

/** One who has a say: the texts that apply, in the order in which they were written. */
export type RouteLayer = readonly LayerRoute[];

interface LayerRoute extends RouteText {
  /** Who that is, in words. */
  readonly by?: string;
}

export function routeLayer(by: string, texts: readonly RouteText[]): RouteLayer {
  return texts.map((text) => ({ ...text, by }));
}

export interface RouteParts {
  /** Whoever counts more stands first. */
  readonly layers: readonly RouteLayer[];
  /** What Docker would ask for every name, and how that is known. */
  readonly fallback: readonly Server[];
  readonly fallbackBy?: string;
  /** The host's own servers, as they are now. */
  readonly host: readonly Server[];
  readonly hasExternalAccess: boolean;
}

export function routesOf({ layers: says, fallback, fallbackBy, host, hasExternalAccess }: RouteParts): Route[] {
  const byDomain = new Map<string, MergedRoute>();
  for (const say of says) {
    for (const [domain, gathered] of mergeLayer(say)) if (!byDomain.has(domain)) byDomain.set(domain, gathered);
  }
  if (!byDomain.has("")) byDomain.set("", { servers: fallback, isLocal: false, by: fallbackBy });
  return [...byDomain]
    .map(([domain, { servers, isLocal, by }]): Route => {
      const suffix = domainLabels(domain);
      const all = isLocal ? [] : servers.flatMap((server) => (server === "host" ? host : server));
      const withheld = hasExternalAccess ? [] : all.filter(({ from }) => from === "host");
      return {
        suffix,
        labelCount: domain === "" ? 0 : domain.split(".").length,
        servers: all.filter(({ from }) => from !== "host" || hasExternalAccess),
        isLocal,
        ...(by !== undefined && { by }),
        ...(withheld.length > 0 && { withheld }),
      };
    })
    .toSorted((a, b) => b.labelCount - a.labelCount);
}

interface MergedRoute {
  readonly servers: readonly NamedServer[];
  readonly isLocal: boolean;
  readonly by: string | undefined;
}

/** Texts of one who has a say, by domain: several servers for one domain are one list. */
function mergeLayer(say: RouteLayer): Map<string, MergedRoute> {
  const byDomain = new Map<string, MergedRoute>();
  for (const { domains, servers, isLocal, by } of say) {
    for (const domain of domains) {
      const before = byDomain.get(domain);
      byDomain.set(domain, {
        servers: [...(before?.servers ?? []), ...servers],
        isLocal: isLocal && (before?.isLocal ?? true),
        by: before?.by ?? by,
      });
    }
  }
  return byDomain;
}
