/**
 * NodeReport: what dns11 is to a KIND node that it serves, and what became of the node's resolv.conf.
 */
import type { KindPolicy } from "./kind-policy.ts";

export interface NodeReport {
  readonly state: "starting" | "working" | "degraded" | "refused";
  /** What resolv.conf is to name, and what is ours at port 53. */
  readonly advertised: readonly string[];
  readonly captured: readonly string[];
  /** Where we listen for pods, without the ports. */
  readonly target: readonly string[];
  readonly families: readonly ("ipv4" | "ipv6")[];
  readonly mode: KindPolicy["mode"];
  /** What became of the node's resolv.conf. */
  readonly resolvConf: string;
  readonly lastChange: string | null;
  /** When a pod's query was last seen to come through, or not to. */
  readonly lastProbe: string | null;
  /** Packets that somebody sent to our ports without having been led there. */
  readonly dropped: number;
  readonly reasons: readonly string[];
  /** What will be wrong when we are gone. */
  readonly warnings: readonly string[];
}
