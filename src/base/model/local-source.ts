/**
 * LocalSource: where a local answer comes from: a source of names, or a rule. For the query history, metrics and lists of
 * names, so there are few, and clients cannot make up more.
 */
export const LOCAL_SOURCE = {
  /** No name: a special name, a route that is never forwarded, a name without a dot. */
  rule: 0,
  network: 1,
  defaultBridge: 2,
  addHost: 3,
  declared: 4,
  zone: 5,
  engineHost: 6,
  otherNetwork: 7,
  project: 8,
  hostDomain: 9,
  extra: 10,
  stopped: 11,
  swarm: 12,
  etcd: 13,
  kubernetes: 14,
  otherMachine: 15,
} as const;

export type LocalSource = (typeof LOCAL_SOURCE)[keyof typeof LOCAL_SOURCE];

/** The sources that others control: whoever may write to the store, or to the cluster, decides what these names are. */
export const FOREIGN_SOURCES: ReadonlySet<LocalSource> = new Set([
  LOCAL_SOURCE.etcd,
  LOCAL_SOURCE.kubernetes,
  LOCAL_SOURCE.otherMachine,
]);

/** Each number has its name for programs, and its text for people. */
export const LOCAL_SOURCES = [
  { key: "rule", title: "a rule" },
  { key: "network", title: "container names" },
  { key: "default-bridge", title: "names on the default bridge" },
  { key: "add-host", title: "--add-host" },
  { key: "declared", title: "declared names" },
  { key: "zone", title: "service names" },
  { key: "engine-host", title: "the engine's host" },
  { key: "other-network", title: "other networks" },
  { key: "project", title: "project names" },
  { key: "host-domain", title: "the host's domain" },
  { key: "extra", title: "extra names" },
  { key: "stopped", title: "stopped containers" },
  { key: "swarm", title: "swarm" },
  { key: "etcd", title: "names in etcd" },
  { key: "kubernetes", title: "names of Kubernetes" },
  { key: "other-machine", title: "service names of other machines" },
] as const;

export type LocalSourceKey = (typeof LOCAL_SOURCES)[number]["key"];

export function localSourceOf(key: LocalSourceKey): LocalSource {
  return LOCAL_SOURCES.findIndex((each) => each.key === key) as LocalSource;
}
