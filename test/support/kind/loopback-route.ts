/**
 * Owns a neighbour that sends packets for 127.0.0.11 out on the wire, to a node of its choice, as an attacker on the same
 * network would: from a namespace in which that address is not loopback's, but behind a gateway.
 */
import { stdoutOf } from "../program/command.ts";
import type { NetworkPlace } from "../rig/netns.ts";

const ADDRESS = "127.0.0.11";
const TABLE = "127";

/** The kernel's first rule says that 127.0.0.0/8 is here. It is put after one of ours, and back at the end. */
const LEAD = [`rule add pref 2 lookup local`, `rule add pref 1 to ${ADDRESS} lookup ${TABLE}`, "rule del pref 0"];
const RESTORE = ["rule add pref 0 lookup local", "rule del pref 1", "rule del pref 2", `route flush table ${TABLE}`];

/**
 * As long as it is held, what the place sends to 127.0.0.11 goes through the device to the node; dig asks there with
 * the usual arguments.
 */
export async function leadLoopbackTo(place: NetworkPlace, node: string, device = "eth0"): Promise<LoopbackRoute> {
  const route = new LoopbackRoute(place);
  await ipIn(place, [...LEAD, `route add ${ADDRESS} via ${node} dev ${device} table ${TABLE}`]);
  // For the answer: it comes from a loopback address by a wire.
  await routeLocalnet(place, 1);
  return route;
}

export class LoopbackRoute implements AsyncDisposable {
  readonly #place: NetworkPlace;

  constructor(place: NetworkPlace) {
    this.#place = place;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await routeLocalnet(this.#place, 0);
    await ipIn(this.#place, RESTORE);
  }
}

async function ipIn(place: NetworkPlace, lines: readonly string[]): Promise<void> {
  stdoutOf(await place.enter("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` }), `ip ${lines.join("; ")}`);
}

async function routeLocalnet(place: NetworkPlace, value: 0 | 1): Promise<void> {
  stdoutOf(await place.enter("sysctl", ["-qw", `net.ipv4.conf.all.route_localnet=${value}`]), "route_localnet");
}
