/**
 * ResolvedMode: the host's own namespace is served through systemd-resolved. It sends us queries for names of the domain
 * and for addresses of containers, whoever asks it and however (its stub, nss-resolve, varlink, D-Bus), and others it
 * never sends. What it was sent goes with the link, so nothing has to be undone.
 */
import { reasonOf } from "../../../base/lib/fault.ts";
import { closeQuietly } from "../../../kernel/libc.ts";
import type { NetlinkMemory } from "../../../kernel/netlink-socket.ts";
import type { AttachMode, ServedNamespace } from "../../attach/attach-mode.ts";
import { type Capture, DOCKER_RESOLVER } from "../../capture/capture.ts";
import type { Subnet } from "../host-subnets.ts";
import { reverseZoneNames } from "../reverse-zones.ts";
import { type LinkDomain, type LinkSettings, isRefusal } from "./resolved-bus.ts";
import { type TunLink, isOwnLink, isUsable, linkNames, openTunLink } from "./tun-link.ts";

/**
 * The server that systemd-resolved asks. Nothing listens there: our rules redirect it, so that the sockets may be
 * others after a failure or a takeover, and that it leads nowhere when they are gone.
 */
const SERVER = "127.0.0.153";

const CAPTURE: Capture = {
  redirects: [{ bind: DOCKER_RESOLVER, fromInside: [SERVER], fromPods: [], replySource: SERVER }],
  bypassInterfaces: [],
  guardsLoopback: false,
  guardsPorts: true,
};

export interface ResolvedModeParts {
  /** Names below these domains resolve. */
  readonly domains: () => readonly string[];
  /** The subnets of reachable containers. */
  readonly subnets: () => Iterable<Subnet>;
  /** The root folder of the host. */
  readonly root: () => number;
  readonly memory: NetlinkMemory;
  readonly bus: {
    domains(): Promise<readonly LinkDomain[]>;
    setLink(settings: LinkSettings): Promise<void>;
  };
  /** systemd-resolved did not accept the link, for this reason. */
  readonly onRefused: (reason: string) => void;
}

export class ResolvedMode implements AttachMode {
  readonly #parts: ResolvedModeParts;
  #link: TunLink | undefined;
  #namespace: ServedNamespace | undefined;
  /** What systemd-resolved was sent last. */
  #sent = "";
  /** How often another process has become systemd-resolved. */
  #starts = 0;
  /** One after the other, so that the last one wins. */
  #turn: Promise<void> = Promise.resolve();
  /** The one that waits for its turn, and will tell what is true then. */
  #next: Promise<void> | undefined;

  constructor(parts: ResolvedModeParts) {
    this.#parts = parts;
  }

  /** Makes the link; throws a Fault where that is not possible. Call inside the host's namespace. */
  openLink(): void {
    const { root, memory } = this.#parts;
    if (this.#link !== undefined && isUsable(this.#link, memory)) return;
    this.#closeLink();
    this.#link = openTunLink(root(), memory);
  }

  /** Another process is systemd-resolved now, and knows nothing. */
  forget(): void {
    this.#starts++;
    this.#sent = "";
    this.#tell().catch(() => undefined);
  }

  capture(): Capture {
    this.openLink();
    return CAPTURE;
  }

  async onVerified(namespace: ServedNamespace): Promise<void> {
    this.#namespace = namespace;
    await this.#tell();
  }

  /** Closes the link first: what is asked from now on goes where it went before. */
  withdraw(): void {
    this.#namespace = undefined;
    this.#sent = "";
    this.#closeLink();
  }

  undo(): void {
    this.withdraw();
  }

  #closeLink(): void {
    if (this.#link !== undefined) closeQuietly(this.#link.fd);
    this.#link = undefined;
  }

  async #tell(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = this.#tellInTurn();
      this.#turn = this.#next.catch(() => undefined);
    }
    await this.#next;
  }

  async #tellInTurn(): Promise<void> {
    await this.#turn;
    this.#next = undefined;
    await this.#tellNow();
  }

  async #tellNow(): Promise<void> {
    const [link, namespace] = [this.#link, this.#namespace];
    if (link === undefined || namespace === undefined) return;
    const { bus, subnets, memory, onRefused } = this.#parts;
    const starts = this.#starts;
    try {
      const names = namespace.within(() => linkNames(memory));
      const all = await bus.domains();
      const others = all.filter(({ index }) => !isOwnLink(names.get(index)));
      const taken = new Set(others.map((each) => each.domain));
      const domains = [...this.#parts.domains(), ...reverseZoneNames(subnets()).filter((zone) => !taken.has(zone))];
      const settings = { index: link.index, server: SERVER, domains };
      const text = JSON.stringify(settings);
      // Another program may have changed the link: resolvectl revert, or a network manager.
      const own = new Set(all.filter(({ index }) => index === link.index).map((each) => each.domain));
      const isSet = domains.every((each) => own.has(each));
      if ((isSet && text === this.#sent) || this.#link !== link) return;
      await bus.setLink(settings);
      this.#sent = text;
    } catch (error) {
      // While it was restarted, the bus said that there is none; the new process is told next.
      if (starts !== this.#starts) return;
      if (isRefusal(error)) onRefused(reasonOf(error));
      throw error;
    }
  }
}
