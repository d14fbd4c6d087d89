/**
 * ExtraHosts: the names that `--add-host` gave a container, for that container alone. Docker writes them only into
 * /etc/hosts, which programs with a resolver of their own never read: nginx, HAProxy, Node's dns.resolve.
 */
import { LOCAL_SOURCE, LOCAL_SOURCES } from "../../base/model/local-source.ts";
import { addressBytes, reverseLabels } from "../../base/model/address.ts";
import { LabelTable } from "../../base/model/label-table.ts";
import {
  type QuestionName,
  MISS,
  type NameAddresses,
  type NameSearch,
  type OwnName,
  type ReverseName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { HostEntry } from "../../container/facts/fact.ts";
import { packedName, spelledLabels } from "../../container/names/docker/docker-name.ts";
import { NO_NAMES, type NameSource } from "../../container/names/source/name-source.ts";
import type { Running } from "../contract.ts";

/** Docker has no such names. */
export function open(): Running {
  return { makeNames: ({ isStrict }) => ({ place: "extra-hosts", source: isStrict ? NO_NAMES : GIVEN_NAMES }) };
}

export const GIVEN_NAMES: NameSource = {
  namesFor: ({ extraHosts }) => (extraHosts.length === 0 ? undefined : new HostEntries(extraHosts)),
};

class HostEntries implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.addHost;
  readonly #forward = new LabelTable<NameAddresses>();
  readonly #names = new Map<string, Uint8Array>();
  readonly #reverse = new LabelTable<ReverseName>();

  constructor(entries: readonly HostEntry[]) {
    for (const { name, address } of entries) {
      const bytes = addressBytes(address);
      const key = spelledLabels(name.toLowerCase());
      if (bytes === undefined || key === undefined) continue;
      this.#names.set(name.toLowerCase(), key);
      this.#forward.set(key, withAddress(this.#forward.get(key), bytes));
      const reverse = reverseLabels(bytes);
      // As in /etc/hosts: the first entry names the address.
      if (this.#reverse.get(reverse) === undefined) this.#reverse.set(reverse, { target: packedName(name) });
    }
  }

  find({ folded, foldedLength, labelCount, hashOf }: QuestionName, search: NameSearch): number {
    const found = this.#forward.find(folded, foldedLength, hashOf[labelCount] as number);
    if (found === undefined) return MISS;
    search.trace?.record("names", "a name that --add-host (extra_hosts) gave this container");
    return search.found(found, false);
  }

  *list(): Iterable<OwnName> {
    for (const [name, key] of this.#names) {
      const { v4, v6 } = this.#forward.get(key) ?? NO_ADDRESSES;
      yield { name, source: LOCAL_SOURCES[this.kind].title, holders: [], v4, v6 };
    }
  }

  pointer(labels: Uint8Array, length: number, hash: number): ReverseName | undefined {
    return this.#reverse.find(labels, length, hash);
  }
}

const NONE = new Uint8Array(0);
const NO_ADDRESSES: NameAddresses = { v4: NONE, v6: NONE };

function withAddress(before: NameAddresses = NO_ADDRESSES, address: Uint8Array): NameAddresses {
  const family = address.length === 4 ? "v4" : "v6";
  return { ...before, [family]: Buffer.concat([before[family], address]) };
}
