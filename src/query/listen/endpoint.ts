/**
 * Endpoint: the listeners of one namespace and the asker they serve. Whoever attaches opens one and closes it; in
 * between it exchanges what the namespace may know, and tells whether a probe has arrived.
 */
import type { View } from "../../model/view.ts";
import { Asker, type Dial } from "../asker.ts";
import { type SlotLimit, Slots } from "../forward/slots.ts";
import { TcpListener } from "./tcp.ts";
import type { TcpParts } from "./tcp-connection.ts";
import { UdpListener, type UdpParts } from "./udp.ts";

/** A bound UDP socket and a listening TCP socket at the same address. */
export interface SocketPair {
  readonly udp: number;
  readonly tcp: number;
  readonly listening: { readonly address: string };
}

export class Endpoint {
  readonly #asker: Asker;
  readonly #udp: readonly UdpListener[];
  readonly #tcp: readonly TcpListener[];
  readonly target = {
    expect: (nonce: string): void => {
      this.#asker.nonce = nonce;
      this.#asker.seenNonce.udp = this.#asker.seenNonce.tcp = false;
    },
    hasSeen: (protocol: "udp" | "tcp"): boolean => this.#asker.seenNonce[protocol],
    forget: (): void => {
      this.#asker.nonce = undefined;
    },
  };

  /** Takes over the sockets. */
  constructor(
    pairs: readonly SocketPair[],
    asked: { readonly view: View; readonly dial: Dial },
    parts: { readonly udp: UdpParts; readonly tcp: TcpParts; readonly slots?: SlotLimit },
  ) {
    this.#asker = new Asker(asked.view, asked.dial, new Slots(parts.slots));
    this.#udp = pairs.map(({ udp, listening }) => new UdpListener(udp, listening.address, this.#asker, parts.udp));
    this.#tcp = pairs.map(({ tcp }) => new TcpListener(tcp, this.#asker, parts.tcp));
  }

  get counters(): Readonly<Record<string, number>> {
    return this.#asker.counters;
  }

  get inFlight(): number {
    return this.#asker.slots.taken;
  }

  get conversations(): readonly number[] {
    return this.#tcp.flatMap((listener) => listener.busyPorts);
  }

  setView(view: View): void {
    this.#asker.view = view;
  }

  close(): void {
    for (const listener of [...this.#udp, ...this.#tcp]) listener.close();
    this.#asker.close();
  }
}
