/**
 * NameSource: a source of names, and which of them each container can resolve. The Names it returns are read by every
 * query of that container and change in place when the names change.
 *
 * A source gets its settings when it is made; a reload makes another one, which succeeds it. It learns of containers and
 * networks by the optional methods. What else changes its names, it learns by methods of its own, and calls `onChange` then.
 */
import type { AddressOwner } from "../../../api/names.ts";
import type { OwnName, VisibleNames } from "../../../base/model/visible-names.ts";
import type { ContainerFact, EndpointFact, NetworkFact, StoppedFact } from "../../facts/fact.ts";
import type { Labels } from "../../facts/labels.ts";

/** What differs for a container through which others ask, too, as pods do through a KIND node. */
export interface NodeContext {
  /** The addresses at which its pods reach us: used as the node's upstream servers they would be a forwarding loop. */
  readonly ownAddresses: readonly string[];
  /** How host.docker.internal resolves in the node: denied, forwarded, or to this address. */
  readonly hostDockerInternal: "deny" | "forward" | (string & {});
  /** The setting that says so. */
  readonly hostDockerInternalBy: string;
}

/** The engine's host, where its programs ask dns11. */
export interface HostContext {
  /** The domains for which they do. */
  readonly zones: readonly string[];
  /** The servers in its resolv.conf. */
  readonly nameservers: readonly string[];
  /** The endpoints of a container, with those of its addresses that the host can reach. */
  readonly reachable: (containerId: string) => readonly EndpointFact[];
}

/** What settings and labels make of a container's names. */
export interface NameTraits {
  /** It shares its names only if no other container has them. */
  readonly isLastResort?: boolean;
  readonly ttlSeconds?: number | undefined;
  /** Its addresses are answered in order. */
  readonly isSorted?: boolean;
  /** The name that its addresses point to. */
  readonly pointer?: string | undefined;
}

/** A running container as a source learns of it. */
export interface NamedContainer {
  readonly fact: ContainerFact;
  /** Its facts until now; undefined for one that was not known. */
  readonly before: ContainerFact | undefined;
  /** The labels that count for it. */
  readonly labels: Labels;
  /** Its Compose project. */
  readonly project: string | undefined;
  readonly traits: NameTraits;
}

/** A name on a network; wildcards begin with "*.". */
export interface NetworkName {
  readonly network: string;
  readonly name: string;
}

export interface NameSource {
  /** Undefined if it has no names for this container. */
  namesFor(container: ContainerFact, node: NodeContext | undefined): VisibleNames | undefined;
  /**
   * It has Docker's resolver asked for names of networks that several machines have. Without such a source that resolver answers all that
   * their containers ask.
   */
  readonly asksDocker?: boolean;
  /** What the host resolves of it. */
  namesForHost?(host: HostContext): readonly VisibleNames[];
  /** What whoever asks resolves of it: also programs of the host, and other machines. */
  namesForEverybody?(): VisibleNames | undefined;
  /** A container has started, or has changed: replaces what it contributes. */
  join?(container: NamedContainer): void;
  /** A container is gone. */
  leave?(fact: ContainerFact): void;
  putNetwork?(fact: NetworkFact): void;
  /** Its containers have been updated before. */
  removeNetwork?(id: string): void;
  /** The containers that are not running, and of which it keeps names; undefined while it keeps none of any. */
  readonly stoppedIds?: Iterable<string> | undefined;
  /** A container is not running; `before` are its facts if it was running until now. */
  putStopped?(fact: StoppedFact, before: ContainerFact | undefined): void;
  removeStopped?(id: string): void;
  /** What it would call a container that is not running, beside Docker's names. */
  namesOf?(stopped: StoppedFact, labels: Labels): readonly NetworkName[];
  /** Who has an address on the networks of a container, where no container of this engine has it. For people: no answer is made of it. */
  ownerOf?(container: ContainerFact, address: string): AddressOwner | undefined;
  /** Names that no container of this engine has, whoever can resolve them, for the list of all. */
  allNames?(): Iterable<OwnName>;
  /** Takes over what the current source knows and this one does not, one thing after the other, and forgets the rest. */
  catchUp?(current: this): Iterable<void>;
  /** Takes over from the current source what does not come from settings, containers or networks. */
  succeed?(current: this): void;
}

/** In the place of a source that settings turn off. */
export const NO_NAMES: NameSource = { namesFor: () => undefined };
