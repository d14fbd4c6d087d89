/**
 * Descriptors: how many files and sockets this process may have, and for how many containers they suffice. Node raises the soft limit to the hard limit itself.
 */
import { readFileSync, openSync } from "node:fs";
import { LIMITS } from "../base/limits.ts";
import { growDescriptorTable, closeQuietly } from "./libc.ts";

/** A namespace, the owner of its rules, the watch on foreign rules, two sockets; the kernel's program and its link. */
const PER_CONTAINER = 7;
/** A KIND node has two more pairs of sockets; few machines have more than a handful of nodes. */
const RESERVED = 64;

export function descriptorsMax(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Grows the kernel's table now, so that no query and no container waits for that later. */
export function preallocateDescriptors(): void {
  growDescriptorTable(Math.min(descriptorsMax(), LIMITS.descriptorsPreallocated));
}

/**
 * A number above those of containers. The kernel closes a dead process's descriptors from the highest number down, and some of a
 * container's take a grace period each. It is not so high that attaching would take it for the last that there is room for.
 */
export function closedFirst(): number {
  return Math.max(0, Math.min(descriptorsMax(), LIMITS.descriptorsPreallocated) - LIMITS.descriptorsReserved * 2);
}

/** Excludes the descriptors that queries to upstreams may take. */
export function roomForContainers(descriptors: number): number {
  const shares = LIMITS.upstreamDescriptorShare + LIMITS.connectionDescriptorShare;
  return Math.max(0, Math.floor((descriptors * (1 - shares) - RESERVED) / PER_CONTAINER));
}

/**
 * Descriptors that are kept back, for a socket that must be opened when there are none left. Nothing else can have
 * their numbers until one is given up, in the same step in which it is needed.
 */
export class SpareDescriptors {
  readonly #count: number;
  readonly #kept: number[] = [];

  constructor(count: number) {
    this.#count = count;
    this.keep();
  }

  /** Gives one up; returns whether there was one. */
  giveUp(): boolean {
    const fd = this.#kept.pop();
    if (fd !== undefined) closeQuietly(fd);
    return fd !== undefined;
  }

  /** Keeps as many back again as there may be, and are free: call when one has been closed. */
  keep(): void {
    try {
      while (this.#kept.length < this.#count) this.#kept.push(openSync("/dev/null", "r"));
    } catch {
      // There are still none.
    }
  }
}
