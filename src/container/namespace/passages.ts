/**
 * Passages: how dns11's own queries pass its rules in a namespace, to Docker's resolver, or to a server that the rules redirect. They
 * have a mark there. A container with NET_RAW may set marks, too, so it is another one in each namespace. While a policy is enforced a
 * mark alone leads nowhere near Docker's resolver: the packet must come from dns11's own control group, or nothing passes.
 */
import { randomInt } from "node:crypto";

import { Fault } from "../../base/lib/fault.ts";
import type { ControlGroup } from "../capture/capture.ts";

/** Others use single bits, and small numbers. */
const MARKS = { first: 0x1_0000, end: 0xffff_ffff } as const;

export interface Passage {
  readonly mark: number;
  /** The control group of this process, where it tells dns11 from the container. */
  readonly group: ControlGroup | undefined;
  /** A policy is enforced: to Docker's resolver, the mark counts in the group only. */
  needsGroup: boolean;
  /** To be called when there are no rules any more. */
  readonly end: () => void;
}

export function randomMark(): number {
  return randomInt(MARKS.first, MARKS.end);
}

/** By the identity of the namespace. */
export class Passages {
  readonly #open = new Map<string, Passage>();

  /** `mark`: that of the process before this one. */
  open(id: string, group: ControlGroup | undefined, mark: number = randomMark()): Passage {
    const passage: Passage = {
      mark,
      group,
      needsGroup: false,
      end: () => {
        if (this.#open.get(id) === passage) this.#open.delete(id);
      },
    };
    this.#open.set(id, passage);
    return passage;
  }

  /** Undefined where there are no rules to pass. Throws a Fault if they let nothing pass to Docker's resolver. */
  markTo(id: string, isToDocker: boolean): number | undefined {
    const passage = this.#open.get(id);
    if (passage === undefined) return undefined;
    if (!isToDocker || !passage.needsGroup || passage.group !== undefined) return passage.mark;
    throw new Fault(
      "POLICY_CLOSES_DOCKER",
      "A policy is enforced for the container, so nothing reaches Docker's resolver",
      {
        remedy: "Run dns11 as a service with a control group of version 2 of its own (--cgroupns host in a container).",
      },
    );
  }
}
