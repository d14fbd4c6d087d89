/**
 * Neighbour that sends packets for 127.0.0.11 over the network to a node of its choice, as an attacker on the same
 * network would: in its namespace that address is not on loopback but behind a gateway.
 */
import { stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";

const ADDRESS = "127.0.0.11";
const TABLE = "127";

/** The kernel's first rule makes 127.0.0.0/8 local. It is moved behind a rule of ours, and moved back at the end. */
const REROUTE = [`rule add pref 2 lookup local`, `rule add pref 1 to ${ADDRESS} lookup ${TABLE}`, "rule del pref 0"];
const RESTORE = ["rule add pref 0 lookup local", "rule del pref 1", "rule del pref 2", `route flush table ${TABLE}`];

/**
 * Until it is disposed, the namespace sends packets for 127.0.0.11 through the device to the node; dig with its default
 * arguments queries it there.
 */
export async function routeLoopbackTo(context: NetworkContext, node: string, device = "eth0"): Promise<LoopbackRoute> {
  const route = new LoopbackRoute(context);
  await ipIn(context, [...REROUTE, `route add ${ADDRESS} via ${node} dev ${device} table ${TABLE}`]);
  // For the reply, which arrives over the network from a loopback address.
  await routeLocalnet(context, 1);
  return route;
}

export class LoopbackRoute implements AsyncDisposable {
  readonly #context: NetworkContext;

  constructor(context: NetworkContext) {
    this.#context = context;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await routeLocalnet(this.#context, 0);
    await ipIn(this.#context, RESTORE);
  }
}

async function ipIn(context: NetworkContext, lines: readonly string[]): Promise<void> {
  stdoutOf(await context.enter("ip", ["-batch", "-"], { input: `${lines.join("\n")}\n` }), `ip ${lines.join("; ")}`);
}

async function routeLocalnet(context: NetworkContext, value: 0 | 1): Promise<void> {
  stdoutOf(await context.enter("sysctl", ["-qw", `net.ipv4.conf.all.route_localnet=${value}`]), "route_localnet");
}
