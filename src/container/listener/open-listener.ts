/**
 * OpenListener: opens the listener in the host's namespace, or takes over the sockets and rules of the previous process: all of it
 * or nothing. Only with its rules is it reachable, because they are what tells who asks.
 */
import { Fault, codeOf } from "../../base/lib/fault.ts";
import { LIMITS } from "../../base/limits.ts";
import type { HeldNamespace } from "../../base/model/held-namespace.ts";
import type { RuleBackendChoice } from "../../base/model/rule-backend.ts";
import { closeInPool } from "../../kernel/in-pool.ts";
import { closeQuietly, forceReceiveBuffer } from "../../kernel/libc.ts";
import type { NetNamespace } from "../../kernel/net-namespace.ts";
import type { NetlinkMemory } from "../../kernel/netlink-socket.ts";
import { type EngineHost, openHostNetwork } from "../namespace/engine-host.ts";
import { isIpv6Enabled } from "../namespace/ipv6.ts";
import type { NamespaceRunner } from "../namespace/namespace-runner.ts";
import {
  type NamespaceSockets,
  type WaitingSocket,
  bindPair,
  bindWaiting,
  closeSockets,
} from "../namespace/sockets.ts";
import type { Askers } from "./asker.ts";
import { LISTENER_LINK, ensureListenerLink } from "./listener-link.ts";
import { ListenerTable } from "./listener-table.ts";

/** What stands for the host's namespace with the keeper. */
export const LISTENER_HELD_ID = "listener";

export interface OpenListenerParts {
  readonly runner: NamespaceRunner;
  readonly memory: NetlinkMemory;
  readonly ruleBackend: RuleBackendChoice;
  readonly host: () => EngineHost;
  readonly inherit: (id: string) => HeldNamespace | undefined;
}

export interface OpenListener {
  readonly netns: NetNamespace;
  readonly table: ListenerTable;
  readonly waiting: readonly WaitingSocket[];
  pairs: readonly NamespaceSockets[];
}

export async function openListener(
  { runner, memory, ruleBackend, host, inherit }: OpenListenerParts,
  askers: Askers,
): Promise<OpenListener> {
  if (ruleBackend.backend !== "nft-owner") throw unfitBackend(ruleBackend.backend);
  const fd = openHostNetwork(host());
  // Not before: what is inherited once must be used or closed.
  const held = inherit(LISTENER_HELD_ID);
  let table: ListenerTable | undefined;
  let pairs: NamespaceSockets[] = [];
  const waiting: WaitingSocket[] = [];
  try {
    const netns = runner.namespaceOf(fd, memory);
    pairs = netns.within(() => bindAll(ensureListenerLink(memory), held?.pairs ?? []));
    netns.within(() => {
      for (const { listening } of pairs) waiting.push(bindWaiting(listening.address));
    });
    if (held?.gate !== undefined) void closeInPool(held.gate);
    table = new ListenerTable(netns, held?.netlink);
    const listening = pairs.map((each) => each.listening);
    await table.install(
      listening,
      waiting.map((each) => each.listening),
      askers,
    );
    return { netns, table, pairs, waiting };
  } catch (error) {
    if (table !== undefined) table.close();
    else if (held !== undefined) void closeInPool(held.netlink);
    closeSockets(pairs);
    for (const { udp } of waiting) closeQuietly(udp);
    closeQuietly(fd);
    throw isOwnedElsewhere(error) ? anotherInstance(error) : error;
  }
}

/** Takes over the sockets of the previous process that still have their address, and binds the others. */
function bindAll(addresses: readonly string[], held: readonly NamespaceSockets[]): NamespaceSockets[] {
  const usable = addresses.filter((address) => !address.includes(":") || isIpv6Enabled());
  closeSockets(held.filter(({ listening }) => !usable.includes(listening.address)));
  const bound: NamespaceSockets[] = [];
  try {
    for (const address of usable) {
      bound.push(held.find(({ listening }) => listening.address === address) ?? bindShared(address));
    }
    return bound;
  } catch (error) {
    closeSockets(bound);
    throw error;
  }
}

function bindShared(address: string): NamespaceSockets {
  const pair = bindPair(address);
  forceReceiveBuffer(pair.udp, LIMITS.listenerReceiveBytes);
  return pair;
}

function unfitBackend(backend: string): Fault {
  return new Fault(
    "LISTENER_NEEDS_NFT",
    `The listener needs rules that end with their process, and the rule backend is ${backend}`,
    {
      remedy: "Use Linux 5.12 or later with nf_tables, or remove the setting listener.",
    },
  );
}

function isOwnedElsewhere(error: unknown): boolean {
  return codeOf(error) === "EPERM";
}

function anotherInstance(error: unknown): Fault {
  return new Fault("LISTENER_TAKEN", `Another dns11 has the listener at the link "${LISTENER_LINK}" of this host`, {
    cause: error,
    remedy: "One instance of a host can have it: remove the setting listener of the other one.",
  });
}
