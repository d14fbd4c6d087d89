/**
 * Endpoint: both listeners of one namespace and the asker they serve. Whoever attaches opens one and closes it; in
 * between it exchanges what the namespace may know, and tells whether a probe has arrived.
 */
import type { View } from "../../model/view.ts";
import { Asker, type Dial } from "../asker.ts";
import { type SlotLimit, Slots } from "../forward/slots.ts";
import { TcpListener } from "./tcp.ts";
import type { TcpParts } from "./tcp-connection.ts";
import { UdpListener, type UdpParts } from "./udp.ts";

export class Endpoint {
  readonly #asker: Asker;
  readonly #udp: UdpListener;
  readonly #tcp: TcpListener;
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

  /** Takes over a bound UDP socket and a listening TCP socket. */
  constructor(
    sockets: { readonly udp: number; readonly tcp: number },
    asked: { readonly view: View; readonly dial: Dial },
    parts: { readonly udp: UdpParts; readonly tcp: TcpParts; readonly slots?: SlotLimit },
  ) {
    this.#asker = new Asker(asked.view, asked.dial, new Slots(parts.slots));
    this.#udp = new UdpListener(sockets.udp, this.#asker, parts.udp);
    this.#tcp = new TcpListener(sockets.tcp, this.#asker, parts.tcp);
  }

  get counters(): Readonly<Record<string, number>> {
    return this.#asker.counters;
  }

  get inFlight(): number {
    return this.#asker.slots.taken;
  }

  get conversations(): readonly number[] {
    return this.#tcp.busyPorts;
  }

  setView(view: View): void {
    this.#asker.view = view;
  }

  close(): void {
    this.#udp.close();
    this.#tcp.close();
    this.#asker.close();
  }
}
