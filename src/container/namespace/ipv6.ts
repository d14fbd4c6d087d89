/**
 * Ipv6: whether a namespace can use IPv6. Docker switches it off in containers without an IPv6 network.
 */
import { procText } from "../../kernel/process.ts";

/** Call inside the namespace. */
export function isIpv6Enabled(): boolean {
  try {
    return procText("/proc/sys/net/ipv6/conf/lo/disable_ipv6")?.trim() === "0";
  } catch {
    return false;
  }
}
