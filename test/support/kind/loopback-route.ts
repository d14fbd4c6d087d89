/**
 * Owns a neighbour that sends packets for 127.0.0.11 out on the wire, to a node of its choice, as an attacker on the same
 * network would: from a namespace in which that address is not loopback's, but behind a gateway.
 */
import { stdoutOf } from "../program/command.ts";
import type { NetworkContext } from "../rig/netns.ts";

const ADDRESS = "127.0.0.11";
const TABLE = "127";

/** The kernel's first rule says that 127.0.0.0/8 is here. It is put after one of ours, and back at the end. */
const LEAD = [`rule add pref 2 lookup local`, `rule add pref 1 to ${ADDRESS} lookup ${TABLE}`, "rule del pref 0"];
const RESTORE = ["rule add pref 0 lookup local", "rule del pref 1", "rule del pref 2", `route flush table ${TABLE}`];

/**
 * As long as it is held, what the place sends to 127.0.0.11 goes through the device to the node; dig asks there with
 * the usual arguments.
 */
export async function routeLoopbackTo(context: NetworkContext, node: string, device = "eth0"): Promise<LoopbackRoute> {
  const route = new LoopbackRoute(context);
  await ipIn(context, [...LEAD, `route add ${ADDRESS} via ${node} dev ${device} table ${TABLE}`]);
  // For the answer: it comes from a loopback address by a wire.
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
