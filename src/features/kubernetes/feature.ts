import { duration, quoting } from "../../config/kinds.ts";
import { NOT_WITH_STRICT, type WithFeatures } from "../../config/feature-entry.ts";
import { featureValues, one } from "../../config/setting.ts";
import type { Settings } from "../../config/settings.ts";
import { isNested, overlapText, readZoneName } from "../../config/zone-name.ts";

/** The API as a pod reaches it, with the token that Kubernetes mounts. */
export const SERVICE_ACCOUNT = "service-account";
const ZONE = "cluster.local";
const CONTEXT_CHARS = 250;
const SECOND_MS = 1_000;
const DAY_MS = 86_400_000;

const settings = {
  "kubernetes.api": one(
    quoting(readApi),
    undefined,
    "kubeconfig of a cluster whose names containers resolve, or service-account in a pod",
  ),
  "kubernetes.context": one(quoting(readContext), undefined, "context of the kubeconfig; without it, its current one"),
  "kubernetes.zone": one(quoting(readZoneName), ZONE, "domain of the cluster"),
  "kubernetes.max-stale": one(
    duration(0, 7 * DAY_MS, SECOND_MS),
    DAY_MS,
    "how long the last known names are answered while the API is unreachable; then queries fail",
  ),
};

export const KUBERNETES = {
  settings,
  conflicts,
  hostZones: (all: Pick<Settings, "features">): readonly string[] => {
    const { api, zone } = clusterOf(all);
    return api === undefined ? [] : [zone];
  },
  report: async () => await import("./report.ts"),
  load: async () => await import("./kubernetes.ts"),
} as const;

/** The cluster whose names containers resolve. */
export interface ClusterSettings {
  /** The path of a kubeconfig, or `service-account`; undefined: no cluster is used. */
  readonly api: string | undefined;
  readonly context: string | undefined;
  readonly zone: string;
  /** How long names are answered that the API has not confirmed. */
  readonly staleSecondsMax: number;
}

export function clusterOf(all: Pick<Settings, "features">): ClusterSettings {
  const values = featureValues(settings, all);
  return {
    api: values["kubernetes.api"],
    context: values["kubernetes.context"],
    zone: values["kubernetes.zone"],
    staleSecondsMax: values["kubernetes.max-stale"] / SECOND_MS,
  };
}

/** Quotes a value in an error. */
type Quote = (value: unknown) => string;

function readApi(value: unknown, quote: Quote): string {
  if (value === SERVICE_ACCOUNT) return value;
  if (typeof value === "string" && value.startsWith("/") && !value.includes("\0")) return value;
  throw new Error(
    `invalid value ${quote(value)}: use the absolute path of a kubeconfig, such as /etc/kubernetes/admin.conf, or ${SERVICE_ACCOUNT}`,
  );
}

function readContext(value: unknown, quote: Quote): string {
  if (typeof value === "string" && value !== "" && value.length <= CONTEXT_CHARS) return value;
  throw new Error(`invalid context ${quote(value)}: use one that kubectl config get-contexts prints`);
}

function conflicts(
  all: Settings,
  { domains, kept }: WithFeatures,
): readonly (readonly [keyof typeof settings, string])[] {
  const { api, context, zone } = clusterOf(all);
  if (api === undefined) {
    const what = "has no effect without kubernetes.api: set it, or remove this setting";
    return [
      ...(context === undefined ? [] : [["kubernetes.context", what] as const]),
      ...(zone === ZONE ? [] : [["kubernetes.zone", what] as const]),
    ];
  }
  const nested = [...all.zones, ...domains].find((each) => isNested(each, zone));
  const overlap = overlapText(zone, kept);
  return [
    ...(all.behaviour.answersAllTypes ? [] : [["kubernetes.api", NOT_WITH_STRICT] as const]),
    ...(context !== undefined && api === SERVICE_ACCOUNT
      ? [["kubernetes.context", "has no effect with a service account: remove it"] as const]
      : []),
    ...(nested === undefined
      ? []
      : [
          ["kubernetes.zone", `"${zone}" and the zone "${nested}" are the same or nested: remove one of them`] as const,
        ]),
    ...(overlap === undefined ? [] : [["kubernetes.zone", overlap] as const]),
  ];
}
