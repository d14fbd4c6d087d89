/**
 * AttachMode: what differs between namespaces when they are attached: which addresses are captured, and what is needed
 * besides sockets and rules. A container with Docker's resolver needs nothing else; a KIND node does.
 */
import { type Capture, CONTAINER_CAPTURE } from "../capture/capture.ts";
import { ANSWERS_LABEL } from "../facts/label-choices.ts";
import type { Within } from "../../kernel/net-namespace.ts";
import type { ProbeResult } from "../rules/probe.ts";

export interface AttachMode {
  /**
   * Called inside the namespace, before anything of ours exists there: prepares what the sockets need and returns the
   * addresses to capture. Called again when they may have changed; each redirect then keeps the address it is bound to.
   */
  capture(): Capture;
  /** Called after a probe from inside the namespace succeeded. */
  onVerified(namespace: ServedNamespace): Promise<void>;
  /** Called when new queries are about to go to Docker's resolver again; `within` enters the namespace. */
  withdraw(within: Within): Promise<void> | void;
  /** Called after the last query was answered, where there is time: reverts in slices what would take long in `undo`. */
  undoInSlices?(within: Within): Promise<void>;
  /**
   * Called inside the namespace, when nothing of ours listens there any more: reverts what `capture` prepared. Absent if
   * `capture` prepares nothing, and so may be called before it is known whether another instance serves the namespace.
   */
  undo?(): void;
  /** Why the process is to answer everything here, where that is not up to the captured addresses. */
  readonly onlyByProcess?: string;
  /** Why its resolv.conf keeps the search list that it has. */
  readonly keepsSearchList?: string;
}

/** How a container is attached, and what to warn of. */
export interface Attaching {
  /** Undefined if it is not. */
  readonly mode: AttachMode | undefined;
  readonly warning?: string | undefined;
}

/**
 * The served namespace, as a mode sees it. After the namespace is no longer served, `fd` and `within` throw a Fault,
 * and a probe returns "unknown".
 */
export interface ServedNamespace {
  readonly fd: number;
  readonly within: Within;
  /** The conntrack zone of the queries that are redirected to us. */
  readonly zone: number;
  /** Sends a nonce query to an address, from this namespace or from another one. */
  readonly probe: (destination: string, from?: ProbeSource) => Promise<ProbeResult>;
}

/** Another namespace to send a probe from, and the source port. */
interface ProbeSource {
  readonly fd: number;
  readonly sourcePort: number;
}

export const CONTAINER_MODE: AttachMode = {
  capture: () => CONTAINER_CAPTURE,
  onVerified: () => Promise.resolve(),
  withdraw: () => undefined,
};

/** The same for a container whose queries the process is to see. */
export const CONTAINER_BY_PROCESS: AttachMode = {
  ...CONTAINER_MODE,
  onlyByProcess: `label ${ANSWERS_LABEL} of the container`,
};
