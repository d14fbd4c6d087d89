/** The objects of a cluster: those of the examples of the specification, and of the documents that describe clusters. */
import type { KubeObject } from "./kube-api.ts";

interface Port {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
}

interface Endpoint {
  readonly addresses: readonly string[];
  readonly hostname?: string;
  readonly isReady?: boolean;
}

interface SliceParts {
  readonly endpoints: readonly Endpoint[];
  readonly ports?: readonly Port[];
  /** Its own name. */
  readonly slice?: string;
}

export function service(place: string, spec: Readonly<Record<string, unknown>>): KubeObject {
  return { kind: "Service", metadata: placeOf(place), spec };
}

/** A service with these addresses. */
export function clusterIp(place: string, addresses: readonly string[], ports: readonly Port[] = []): KubeObject {
  return service(place, { type: "ClusterIP", clusterIP: addresses[0], clusterIPs: addresses, ports });
}

export function headless(place: string, ports: readonly Port[] = [], more: object = {}): KubeObject {
  return service(place, { type: "ClusterIP", clusterIP: "None", clusterIPs: ["None"], ports, ...more });
}

/** The endpoints of a service, all of one family. */
export function slice(place: string, { endpoints, ports = [], slice: own = "abcde" }: SliceParts): KubeObject {
  const { namespace, name } = placeOf(place);
  const addressType = endpoints[0]?.addresses[0]?.includes(":") === true ? "IPv6" : "IPv4";
  return {
    kind: "EndpointSlice",
    metadata: { namespace, name: `${name}-${own}`, labels: { "kubernetes.io/service-name": name } },
    addressType,
    endpoints: endpoints.map(({ addresses, hostname, isReady }) => ({
      addresses,
      ...(hostname !== undefined && { hostname }),
      ...(isReady !== undefined && { conditions: { ready: isReady } }),
    })),
    ports,
  };
}

const HTTPS = { name: "https", port: 443, protocol: "TCP" };

/** NAME.NAMESPACE of each is that of its document. */
export const CLUSTER: readonly KubeObject[] = [
  // The specification.
  clusterIp("kubernetes.default", ["10.3.0.1"], [HTTPS]),
  headless("headless.default", [HTTPS]),
  slice("headless.default", {
    endpoints: [
      { addresses: ["10.3.0.100"], hostname: "my-pet" },
      { addresses: ["10.3.0.101"], hostname: "my-pet-2", isReady: true },
      { addresses: ["10.3.0.102"] },
      { addresses: ["10.3.0.103"], hostname: "not-yet", isReady: false },
    ],
    ports: [HTTPS],
  }),
  service("foo.default", { type: "ExternalName", externalName: "www.example.com" }),
  // A node of Kubernetes 1.5: `kubectl get svc`, `kubectl get ep`.
  clusterIp(
    "kube-dns.kube-system",
    ["10.96.0.10"],
    [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
    ],
  ),
  slice("kube-dns.kube-system", {
    endpoints: [{ addresses: ["10.244.0.2"] }],
    ports: [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns-tcp", port: 53, protocol: "TCP" },
    ],
  }),
  // OpenShift.
  clusterIp("mybank.dev", ["172.30.162.172"], [{ port: 8080 }]),
  clusterIp("jenkins.dev", ["172.30.4.5"], [{ name: "web", port: 80 }]),
  slice("jenkins.dev", { endpoints: [{ addresses: ["10.128.2.81"] }, { addresses: ["10.131.1.70"] }] }),
  clusterIp("registry-console.default", ["172.30.9.9"], [{ name: "registry-console", port: 9000 }]),
];

function placeOf(place: string): { readonly namespace: string; readonly name: string } {
  const [name = "", namespace = ""] = place.split(".");
  return { namespace, name };
}
