/**
 * Mode: what makes one namespace different from another for whoever attaches to it: which addresses are ours there, and
 * what has to stand beside sockets and rules. A container with Docker's resolver needs nothing beside.
 */
import { type Capture, CONTAINER_CAPTURE } from "../capture/capture.ts";
import type { Within } from "../rules/exchange.ts";
import type { ProbeResult } from "../rules/probe.ts";

export interface AttachMode {
  /**
   * Inside the namespace, before anything of ours is there: makes what the sockets need, and tells what is to lead to us.
   * Called again when something may have changed: then each lead is bound where it was before.
   */
  capture(): Capture;
  /** The namespace's own queries come through, as they have just been seen to. */
  onVerified(site: ServedNamespace): Promise<void>;
  /** From here on new queries go to Docker's resolver again, in the namespace that `within` leads into. */
  withdraw(within: Within): void;
  /** Inside the namespace, where nothing of ours listens any more: takes back what `capture` made. */
  undo(): void;
}

/**
 * The namespace that is served, for whoever has to look into it. Once it is not any more nobody gets in by it: the first two
 * throw a Fault, and a probe finds out nothing.
 */
export interface ServedNamespace {
  readonly fd: number;
  readonly within: Within;
  /** The zone of connection tracking in which queries that come to us are. */
  readonly zone: number;
  /** Sends a nonce query to an address, from inside the namespace or from another one. */
  readonly probe: (destination: string, from?: ProbeSource) => Promise<ProbeResult>;
}

/** Another namespace to ask from, and the port. */
interface ProbeSource {
  readonly fd: number;
  readonly sourcePort: number;
}

export const CONTAINER_MODE: AttachMode = {
  capture: () => CONTAINER_CAPTURE,
  onVerified: () => Promise.resolve(),
  withdraw: () => undefined,
  undo: () => undefined,
};
