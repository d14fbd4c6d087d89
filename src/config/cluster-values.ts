/**
 * ClusterValues: reads the values of the keys for Kubernetes, and finds those that contradict others.
 */
import { CLUSTER_DEFAULTS, type ClusterPolicy, SERVICE_ACCOUNT } from "../base/model/cluster-policy.ts";
import { isNested } from "./zone-name.ts";

/** Quotes a value in an error. */
type Quote = (value: unknown) => string;

const CONTEXT_CHARS = 250;

export function readClusterApi(value: unknown, quote: Quote): string {
  if (value === SERVICE_ACCOUNT) return value;
  if (typeof value === "string" && value.startsWith("/") && !value.includes("\0")) return value;
  throw new Error(
    `invalid value ${quote(value)}: use the absolute path of a kubeconfig, such as /etc/kubernetes/admin.conf, or ${SERVICE_ACCOUNT}`,
  );
}

export function readContext(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value !== "" && value.length <= CONTEXT_CHARS) return value;
  throw new Error(`invalid context ${quote(value)}: use one that kubectl config get-contexts prints`);
}

type Conflict = readonly [`kubernetes.${"zone" | "context"}`, string];

/** The keys whose values contradict others, each with what to do. */
export function clusterConflicts(
  { api, context, zone }: ClusterPolicy,
  others: { readonly zones: readonly string[]; readonly hostDomain: string | undefined },
): readonly Conflict[] {
  if (api === undefined) {
    const what = "has no effect without kubernetes.api: set it, or remove this setting";
    return [
      ...(context === undefined ? [] : [["kubernetes.context", what] as const]),
      ...(zone === CLUSTER_DEFAULTS.zone ? [] : [["kubernetes.zone", what] as const]),
    ];
  }
  const nested = others.zones.find((each) => isNested(each, zone));
  const isHosts = others.hostDomain !== undefined && isNested(others.hostDomain, zone);
  return [
    ...(context !== undefined && api === SERVICE_ACCOUNT
      ? [["kubernetes.context", "has no effect with a service account: remove it"] as const]
      : []),
    ...(nested === undefined
      ? []
      : [
          ["kubernetes.zone", `"${zone}" and the zone "${nested}" are the same or nested: remove one of them`] as const,
        ]),
    ...(isHosts
      ? [["kubernetes.zone", `"${zone}" overlaps host-domain "${others.hostDomain}": change one of them`] as const]
      : []),
  ];
}
