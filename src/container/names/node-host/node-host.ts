/**
 * NODE_HOST: host.docker.internal, Docker Desktop's name for the host, which KIND looks up at each start of a node.
 * Only nodes resolve it, and only if the settings give it an address.
 */
import { folded, sameBytes, wireLabels } from "../../../base/dns/name.ts";
import { addressBytes } from "../../../base/model/address.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type VisibleNames,
} from "../../../base/model/visible-names.ts";
import type { NameSource } from "../name-source.ts";

export const HOST_DOCKER_INTERNAL = "host.docker.internal";
const LABELS = folded(wireLabels(HOST_DOCKER_INTERNAL) as Uint8Array);
const NONE = new Uint8Array(0);

class HostNames implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly #named: NameAddresses;

  constructor(address: Uint8Array) {
    this.#named = address.length === 4 ? { v4: address, v6: NONE } : { v4: NONE, v6: address };
  }

  find({ folded: labels, foldedLength }: QuestionName, search: NameSearch): number {
    if (foldedLength !== LABELS.length || !sameBytes(labels, 0, LABELS, 0, LABELS.length)) return MISS;
    search.trace?.record("names", `"${HOST_DOCKER_INTERNAL}" is the engine's host, as set for this KIND node`);
    return search.found(this.#named, false);
  }

  /** Reverse queries for the host's address go to the host's servers. */
  pointer(): undefined {
    return undefined;
  }
}

export const NODE_HOST: NameSource = {
  namesFor(_container, node) {
    // "deny" and "forward" are not addresses.
    const address = node === undefined ? undefined : addressBytes(node.hostDockerInternal);
    return address === undefined ? undefined : new HostNames(address);
  },
};
