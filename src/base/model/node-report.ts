/** The state of a KIND node that dns11 serves, or of a container with an engine inside, and of its resolv.conf. */
export interface NodeReport {
  readonly state: "starting" | "working" | "degraded" | "refused";
  /** Addresses in resolv.conf, and those whose port 53 is redirected to us. */
  readonly advertised: readonly string[];
  readonly captured: readonly string[];
  /** We listen for pods at these, without the ports. */
  readonly target: readonly string[];
  readonly families: readonly ("ipv4" | "ipv6")[];
  readonly mode: "listener" | "loopback";
  /** The state of the node's resolv.conf. */
  readonly resolvConf: string;
  readonly lastChange: string | null;
  /** The time at which a query of a probe pod last arrived, or failed to. */
  readonly lastProbe: string | null;
  /** Packets sent to our ports directly instead of being redirected there. */
  readonly dropped: number;
  readonly reasons: readonly string[];
  /** It has an engine or a builder inside, and is no node of a cluster. */
  readonly isNested?: true;
  /** What will not work after dns11 has stopped. */
  readonly warnings: readonly string[];
}
