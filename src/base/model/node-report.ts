/**
 * NodeReport: the status of a KIND node that dns11 serves.
 */
import type { KindPolicy } from "./kind-policy.ts";

export interface NodeReport {
  readonly state: "starting" | "working" | "degraded" | "refused";
  /** The nameservers for resolv.conf, and all addresses whose port 53 dns11 captures. */
  readonly advertised: readonly string[];
  readonly captured: readonly string[];
  /** The addresses on which dns11 listens for pods, without ports. */
  readonly target: readonly string[];
  readonly families: readonly ("ipv4" | "ipv6")[];
  readonly mode: KindPolicy["mode"];
  /** The state of the node's resolv.conf, a phrase for people. */
  readonly resolvConf: string;
  readonly lastChange: string | null;
  /** The time of the last probe from a test pod. */
  readonly lastProbe: string | null;
  /** Packets sent directly to our ports, without a redirect. */
  readonly dropped: number;
  readonly reasons: readonly string[];
  /** Problems that will appear when dns11 stops. */
  readonly warnings: readonly string[];
}
