import { CLIENT_SUBNET } from "./features/client-subnet/feature.ts";
import { DEFAULT_BRIDGE } from "./features/default-bridge/feature.ts";
import { DNSTAP } from "./features/dnstap/feature.ts";
import { DNSMASQ } from "./features/dnsmasq/feature.ts";
import { EGRESS } from "./features/egress/feature.ts";
import { ETCD } from "./features/etcd/feature.ts";
import { EXTRA_HOSTS } from "./features/extra-hosts/feature.ts";
import { EXTRA_NAMES } from "./features/extra-names/feature.ts";
import { FAMILIES } from "./features/families/feature.ts";
import { HOST_NAMES } from "./features/host-names/feature.ts";
import { KERNEL_ANSWERS } from "./features/kernel-answers/feature.ts";
import { KIND } from "./features/kind/feature.ts";
import { KUBE_DNS } from "./features/kube-dns/feature.ts";
import { KUBERNETES } from "./features/kubernetes/feature.ts";
import { LAB } from "./features/lab/feature.ts";
import { LAN } from "./features/lan/feature.ts";
import { LISTENER } from "./features/listener/feature.ts";
import { MDNS } from "./features/mdns/feature.ts";
import { OTHER_NETWORKS } from "./features/other-networks/feature.ts";
import { POLICY } from "./features/policy/feature.ts";
import { PROJECTS } from "./features/projects/feature.ts";
import { QUERY_LOG } from "./features/query-log/feature.ts";
import { RECORDS } from "./features/records/feature.ts";
import { SEARCH } from "./features/search/feature.ts";
import { STOPPED } from "./features/stopped/feature.ts";
import { SWARM } from "./features/swarm/feature.ts";
import { ZONES } from "./features/zones/feature.ts";

/** What this dns11 can do beyond answering as Docker's resolver does, in the order of its help. Each is a folder of its own. */
export const FEATURES = [
  RECORDS,
  DNSMASQ,
  KUBE_DNS,
  KERNEL_ANSWERS,
  SWARM,
  DEFAULT_BRIDGE,
  EXTRA_HOSTS,
  OTHER_NETWORKS,
  PROJECTS,
  EXTRA_NAMES,
  STOPPED,
  ZONES,
  HOST_NAMES,
  KIND,
  LISTENER,
  LAN,
  MDNS,
  ETCD,
  LAB,
  QUERY_LOG,
  KUBERNETES,
  EGRESS,
  CLIENT_SUBNET,
  DNSTAP,
  FAMILIES,
  POLICY,
  SEARCH,
] as const;
