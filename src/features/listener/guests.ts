/**
 * Guests: containers with a network stack of their own (gVisor, Kata). Nothing in their namespace sees their queries, Docker's resolver at
 * 127.0.0.11 neither, so they ask the listener on the host: its address takes the place of 127.0.0.11 in the resolv.conf that Docker
 * made for them, which a running guest reads. The change is in the journal before it is made, and is undone to the byte.
 */
import { isIPv6 } from "node:net";

import type { ListenerReport } from "../../api/listener.ts";
import { reasonOf } from "../../base/lib/fault.ts";
import type { ReportEvent } from "../../base/model/event.ts";
import { LISTENER_ADDRESSES } from "../../base/model/listener-addresses.ts";
import { DOCKER_RESOLVER } from "../../container/capture/capture.ts";
import { type ContainerFact, isUserDefined } from "../../container/facts/fact.ts";
import { hasOwnStack } from "../../container/facts/runtime.ts";
import { type Journal, type NodeRecord, newRecord } from "../../container/kind/journal.ts";
import { NodeResolvConf } from "../../container/kind/node-resolv-conf.ts";
import type { SearchList } from "../../container/kind/resolv-conf-text.ts";
import { type EngineHost, isContainerPath } from "../../container/namespace/engine-host.ts";
import { openInRoot } from "../../kernel/libc.ts";

export interface GuestsParts {
  readonly journal: Journal;
  readonly host: () => EngineHost;
  readonly listener: () => Pick<ListenerReport, "state" | "addresses">;
  /** The search list of its project, for a guest that asks for it. */
  readonly searchListOf: (fact: ContainerFact) => SearchList | undefined;
  /** Another program has written a guest's resolv.conf: decide about it again. */
  readonly onRewritten: (containerId: string) => void;
  readonly onEvent: ReportEvent;
}

interface Guest {
  readonly startedAt: string;
  readonly resolvConf: NodeResolvConf;
  record: NodeRecord;
}

export class Guests {
  readonly #parts: GuestsParts;
  readonly #guests = new Map<string, Guest>();

  constructor(parts: GuestsParts) {
    this.#parts = parts;
  }

  /** Whether the file of this container is changed. */
  isChanged(fact: ContainerFact): boolean {
    return hasOwnStack(fact) && this.#parts.listener().state !== "off";
  }

  /** Has the container ask the listener, where that answers. Returns how it is served, for people. */
  serve(fact: ContainerFact): string {
    const { state, addresses } = this.#parts.listener();
    if (state === "off") {
      this.release(fact.id);
      return `with listener: true, dns11 answers it at ${LISTENER_ADDRESSES.ipv4}`;
    }
    if (!fact.endpoints.some(({ networkName }) => isUserDefined(networkName)))
      return `dns11 answers it at ${LISTENER_ADDRESSES.ipv4}, if it asks there: its resolv.conf has servers of its own`;
    if (state === "opening") return `dns11 answers it at ${LISTENER_ADDRESSES.ipv4} once the listener on the host does`;
    if (state !== "serving") return "the listener on the host, which would answer it, does not answer now";
    const address = addressFor(fact, addresses);
    if (address === undefined) return "the listener on the host has no address that it can reach";
    return this.#advertise(fact, address);
  }

  /** Undoes what was done for a container that is no guest, or is not to be served. */
  release(containerId: string): void {
    const guest = this.#guests.get(containerId);
    if (guest === undefined) return;
    this.#guests.delete(containerId);
    const { resolvConf, record } = guest;
    const about = { container: record.name };
    try {
      if (record.resolvConf !== undefined) resolvConf.restore(record.resolvConf, undefined, [DOCKER_RESOLVER]);
      this.#parts.journal.remove(containerId);
    } catch (error) {
      this.#parts.onEvent({ ...about, reason: reasonOf(error) }, "cannot restore the resolv.conf of a guest", "warn");
    }
  }

  /** The container is gone, and its resolv.conf with it. */
  forget(containerId: string): void {
    const guest = this.#guests.get(containerId);
    if (guest === undefined) return;
    this.#guests.delete(containerId);
    guest.resolvConf.close();
    this.#parts.journal.remove(containerId);
  }

  /** Undoes all, or leaves it to the process that serves now. */
  close(isUndone: boolean): void {
    for (const [id, { resolvConf }] of [...this.#guests]) {
      if (isUndone) this.release(id);
      else resolvConf.close();
    }
    this.#guests.clear();
  }

  #advertise(fact: ContainerFact, address: string): string {
    const guest = this.#ensure(fact);
    try {
      guest.resolvConf.advertise({
        addresses: [address],
        search: undefined,
        list: this.#parts.searchListOf(fact),
        record: guest.record.resolvConf,
        save: (resolvConf) => {
          guest.record = { ...guest.record, resolvConf };
          this.#parts.journal.write(guest.record);
        },
        onRewritten: () => this.#parts.onRewritten(fact.id),
      });
      return `dns11 answers it at ${address}; resolv.conf: ${guest.resolvConf.state}`;
    } catch (error) {
      return `dns11 answers it at ${address}, if it asks there: its resolv.conf cannot be written: ${reasonOf(error)}`;
    }
  }

  #ensure(fact: ContainerFact): Guest {
    const known = this.#guests.get(fact.id);
    if (known?.startedAt === fact.startedAt) return known;
    known?.resolvConf.close();
    const { record: saved } = this.#parts.journal.read(fact.id);
    const record = saved?.startedAt === fact.startedAt ? saved : newRecord(fact, "listener");
    const guest = { startedAt: fact.startedAt, record, resolvConf: this.#resolvConfOf(fact) };
    this.#guests.set(fact.id, guest);
    return guest;
  }

  /** The guest's own files cannot be read from the host. If a user has mounted another file, Docker reports that one's path. */
  #resolvConfOf({ id, resolvConfPath: path = "" }: ContainerFact): NodeResolvConf {
    const { host } = this.#parts;
    const open = (flags: number): number => openInRoot(host().root, path, flags);
    return new NodeResolvConf({
      path,
      openWritten: open,
      openRead: open,
      openOriginal: open,
      isContainerFile: () => isContainerPath(path, id),
    });
  }
}

function addressFor({ endpoints }: ContainerFact, addresses: readonly string[]): string | undefined {
  const families = { v4: endpoints.some(({ ipv4 }) => ipv4 !== undefined) };
  return addresses.find((address) => isIPv6(address) !== families.v4);
}
