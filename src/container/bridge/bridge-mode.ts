/**
 * BridgeMode: attaches to a container on the default bridge, which has no resolver of Docker's. It captures port 53 of
 * the servers in the container's resolv.conf, and writes no file: without our rules, queries go to these servers as
 * before.
 */
import { isIPv6 } from "node:net";

import { Fault } from "../../base/lib/fault.ts";
import type { FailureCode } from "../../base/model/not-served.ts";
import type { AttachMode, ServedNamespace } from "../attach/attach-mode.ts";
import { type Capture, DOCKER_RESOLVER } from "../capture/capture.ts";
import { isIpv6Enabled } from "../namespace/ipv6.ts";

/** Loopback addresses of the container: nothing outside reaches them. */
const BIND = { ipv4: DOCKER_RESOLVER, ipv6: "::1" };

export class BridgeMode implements AttachMode {
  #servers: readonly string[];
  #captured: readonly string[] = [];

  constructor(servers: readonly string[]) {
    this.#servers = servers;
  }

  /** Takes the servers of a changed file. Returns whether other addresses are to be captured. */
  update(servers: readonly string[]): boolean {
    const isSame = servers.length === this.#servers.length && servers.every((each, at) => each === this.#servers[at]);
    this.#servers = servers;
    return !isSame;
  }

  /** A pair of sockets for each server, so that even a reply whose conntrack entry is gone has the right source. */
  capture(): Capture {
    const hasIpv6 = isIpv6Enabled();
    this.#captured = this.#servers.filter((server) => hasIpv6 || !isIPv6(server));
    if (this.#captured.length === 0) {
      throw new Fault(
        "ATTACH_FAILED" satisfies FailureCode,
        "Its resolv.conf has IPv6 servers only, and IPv6 is off there",
      );
    }
    const redirects = this.#captured.map((server) => ({
      bind: isIPv6(server) ? BIND.ipv6 : BIND.ipv4,
      fromInside: [server],
      fromPods: [],
      replySource: server,
    }));
    return { redirects, bypassInterfaces: [], guardsLoopback: false };
  }

  /** The first server was probed before; the other family takes other rules. */
  async onVerified(served: ServedNamespace): Promise<void> {
    const [first = ""] = this.#captured;
    const other = this.#captured.find((server) => isIPv6(server) !== isIPv6(first));
    if (other === undefined) return;
    // A probe may be lost on a busy machine.
    for (let attempt = 0; attempt < 2; attempt++) if ((await served.probe(other)).kind !== "broken") return;
    throw new Fault("UNVERIFIED" satisfies FailureCode, `Queries to ${other} do not reach dns11`);
  }

  withdraw(): void {
    // Nothing was announced.
  }
}
