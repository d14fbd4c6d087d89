/**
 * ProjectNames: SERVICE.PROJECT, the containers of a Compose service. It tells services of several projects with one name
 * apart. A container sees it on its own networks first, then on those that the setting `visible` adds. A name that is no
 * service of the project is forwarded, because a project can have the name of a public domain.
 */
import { LOCAL_SOURCE } from "../../base/model/local-source.ts";
import { addressBytes } from "../../base/model/address.ts";
import { presentation, wireLabels } from "../../base/dns/name.ts";
import { LabelTable } from "../../base/model/label-table.ts";
import {
  MISS,
  type NameSearch,
  type OwnName,
  type QuestionName,
  type VisibleNames,
} from "../../base/model/visible-names.ts";
import type { VisibleSetting } from "../../base/model/name-choices.ts";
import { serviceName } from "../../container/facts/compose.ts";
import type { Labels } from "../../container/facts/labels.ts";
import { featureValues } from "../../config/setting.ts";
import { type ContainerFact, type NetworkFact, type StoppedFact, isUserDefined } from "../../container/facts/fact.ts";
import { apartLast } from "../../container/names/source/gateways.ts";
import { type EndpointAddresses, NameEntry } from "../../container/names/source/name-entry.ts";
import {
  NO_NAMES,
  type NameSource,
  type NamedContainer,
  type NetworkName,
} from "../../container/names/source/name-source.ts";
import { type Visibility, visibilityOf } from "../../container/names/source/visibility.ts";
import type { Running } from "../contract.ts";
import { PROJECTS } from "./feature.ts";

export function open(): Running {
  return {
    makeNames: (settings, { networkOf }) => {
      const isOn = featureValues(PROJECTS.settings, settings)["project-names"];
      return { place: "projects", source: isOn ? new ProjectNames(settings.visible, networkOf) : NO_NAMES };
    },
  };
}

type NetworkOf = (id: string) => NetworkFact | undefined;

/** The containers of one service by network. */
class ProjectService {
  readonly byNetwork = new Map<string, NameEntry>();

  put(networkId: string, holder: string, addresses: EndpointAddresses): void {
    const entry = this.byNetwork.get(networkId) ?? new NameEntry();
    entry.put(holder, addresses);
    this.byNetwork.set(networkId, entry);
  }

  remove(holder: string): void {
    for (const [networkId, entry] of this.byNetwork) {
      entry.remove(holder);
      if (!entry.hasHolders) this.byNetwork.delete(networkId);
    }
  }
}

class VisibleServices implements VisibleNames {
  readonly places: readonly string[] = [];
  readonly kind = LOCAL_SOURCE.project;
  readonly #services: LabelTable<ProjectService>;
  readonly #own: readonly string[];
  readonly #visibility: Visibility | undefined;
  readonly #networkOf: NetworkOf;

  /** `own`: the container's networks, of which the first with the service is answered. */
  constructor(
    services: LabelTable<ProjectService>,
    own: readonly string[],
    visibility: Visibility | undefined,
    networkOf: NetworkOf,
  ) {
    this.#services = services;
    this.#own = own;
    this.#visibility = visibility;
    this.#networkOf = networkOf;
  }

  find({ folded, foldedLength, labelCount, hashOf }: QuestionName, search: NameSearch): number {
    const service = this.#services.find(folded, foldedLength, hashOf[labelCount] as number);
    if (service === undefined) return MISS;
    for (const id of this.#own) {
      const entry = service.byNetwork.get(id);
      if (entry === undefined) continue;
      search.trace?.record("names", `a service of a Compose project, on "${this.#networkOf(id)?.name ?? id}"`);
      return search.found(entry, true);
    }
    return this.#findElsewhere(service, search);
  }

  *list(): Iterable<OwnName> {
    for (const [key, service] of this.#services.entries()) {
      const own = this.#own.find((id) => service.byNetwork.has(id));
      const id = own ?? [...service.byNetwork.keys()].find((each) => this.#seesElsewhere(each));
      const entry = id === undefined ? undefined : service.byNetwork.get(id);
      if (id === undefined || entry === undefined) continue;
      const { v4, v6 } = own === undefined ? (this.#visibility?.reachable(entry) ?? entry) : entry;
      const network = this.#networkOf(id)?.name ?? id;
      yield { name: presentation(key, 0, key.length), source: "project name", network, holders: entry.holders, v4, v6 };
    }
  }

  #seesElsewhere(id: string): boolean {
    const network = this.#networkOf(id);
    return network !== undefined && this.#visibility?.sees(network) === true;
  }

  #findElsewhere({ byNetwork }: ProjectService, search: NameSearch): number {
    const visibility = this.#visibility;
    if (visibility === undefined) return MISS;
    for (const [id, entry] of byNetwork) {
      const network = this.#networkOf(id);
      if (network === undefined || !visibility.sees(network)) continue;
      const where = `on "${network.name}", a network that this container is not on (setting visible)`;
      search.trace?.record("names", `a service of a Compose project, ${where}`);
      return search.found(visibility.reachable(entry), true);
    }
    return MISS;
  }

  /** An address has the name that Docker gives it. */
  pointer(): undefined {
    return undefined;
  }
}

export class ProjectNames implements NameSource {
  readonly #services = new LabelTable<ProjectService>();
  readonly #keys = new Map<string, Uint8Array>();
  readonly #networkOf: NetworkOf;
  readonly #visible: VisibleSetting;

  constructor(visible: VisibleSetting, networkOf: NetworkOf) {
    this.#networkOf = networkOf;
    this.#visible = visible;
  }

  join({ fact, labels, traits }: NamedContainer): void {
    this.leave(fact);
    const name = serviceName(labels);
    const key = name === undefined ? undefined : wireLabels(name);
    if (key === undefined) return;
    const service = this.#services.get(key) ?? new ProjectService();
    for (const { networkId, networkName, ipv4, ipv6 } of fact.endpoints) {
      const v4 = ipv4 === undefined ? undefined : addressBytes(ipv4);
      const v6 = ipv6 === undefined ? undefined : addressBytes(ipv6);
      if (isUserDefined(networkName) && (v4 ?? v6) !== undefined)
        service.put(networkId, fact.id, { v4, v6, ...traits });
    }
    if (service.byNetwork.size === 0) return;
    this.#services.set(key, service);
    this.#keys.set(fact.id, key);
  }

  leave({ id }: Pick<ContainerFact, "id">): void {
    const key = this.#keys.get(id);
    if (key === undefined) return;
    this.#keys.delete(id);
    const service = this.#services.get(key);
    service?.remove(id);
    if (service?.byNetwork.size === 0) this.#services.delete(key);
  }

  namesOf({ networks }: StoppedFact, labels: Labels): readonly NetworkName[] {
    const name = serviceName(labels);
    return name === undefined ? [] : networks.map(({ name: network }) => ({ name, network }));
  }

  namesFor(container: ContainerFact): VisibleNames {
    const own = container.endpoints.filter(({ networkName }) => isUserDefined(networkName));
    const ordered = own.toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1));
    return new VisibleServices(
      this.#services,
      apartLast(ordered, this.#networkOf).map(({ networkId }) => networkId),
      visibilityOf(container, this.#visible, this.#networkOf),
      this.#networkOf,
    );
  }
}
