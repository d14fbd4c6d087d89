import { findingsOf } from "../../base/model/finding.ts";

export const checks = {
  "kind-resolv-conf": {
    title: "node resolv.conf",
    examines: "in a KIND node: whether pods can reach the servers its file names",
  },
  "kind-rules": { title: "dns11 rules in the node", examines: "which process owns dns11's rules in a node" },
  "kind-port-53": { title: "node port 53", examines: "other programs that listen where pods send queries" },
  "kind-answers": {
    title: "query in the node",
    examines: "the node's name, queried by the node and by a temporary pod",
    explainedBy: ["kind-port-53", "route-localnet", "kind-resolv-conf", "kind-docker"],
    isRepairable: true,
  },
  "kind-docker": {
    title: "Docker's resolver in the node",
    examines: "whether and where Docker's resolver answers in the node when dns11 does not",
  },
  "kind-pod": { title: "test pod", examines: "whether such a pod can be created" },
  "kind-services": {
    title: "Services from the machine",
    examines:
      "whether the machine has a route to the Services of the node's cluster, which names from [its DNS](kubernetes.md#names-of-a-cluster-from-its-own-dns) lead to",
  },
  "route-localnet": {
    title: "route_localnet",
    examines: "the kernel setting without which pods cannot reach 127.0.0.11",
    isRepairable: true,
  },
};

export const finding = findingsOf(checks);
