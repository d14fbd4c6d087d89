import { findingsOf } from "../../base/model/finding.ts";

export const checks = {
  "kind-resolv-conf": { title: "node resolv.conf" },
  "kind-rules": { title: "dns11 rules in the node" },
  "kind-port-53": { title: "node port 53" },
  "kind-answers": {
    title: "query in the node",
    explainedBy: ["kind-port-53", "route-localnet", "kind-resolv-conf", "kind-docker"],
    isRepairable: true,
  },
  "kind-docker": { title: "Docker's resolver in the node" },
  "kind-pod": { title: "test pod" },
  "kind-services": { title: "Services from the machine" },
  "route-localnet": { title: "route_localnet", isRepairable: true },
};

export const finding = findingsOf(checks);
