/**
 * Descriptors: how many files and sockets this process may have, and for how many containers they suffice. Node raises the soft limit to the hard limit itself.
 */
import { readFileSync, openSync } from "node:fs";
import { LIMITS } from "../base/limits.ts";
import { growDescriptorTable, closeQuietly } from "./libc.ts";

/** A namespace, the owner of its rules, the watch for changes of rules by others, two sockets; the kernel's program and its link. */
const PER_CONTAINER = 7;
/** Two more pairs of sockets for each KIND node; few machines have more than a handful of nodes. */
const RESERVED = 64;

export function descriptorsMax(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? Number.POSITIVE_INFINITY : Number(soft);
}

/** Grows the kernel's table now, so that later no query and no container waits for it. */
export function preallocateDescriptors(): void {
  growDescriptorTable(Math.min(descriptorsMax(), LIMITS.descriptorsPreallocated));
}

/**
 * A number above those of containers' descriptors. The kernel closes a dead process's descriptors from the highest number down, and some of
 * a container's take a grace period each. The number is not so high that attaching would take it for the last one that there is room for.
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
 * Descriptors that are kept in reserve, for a socket that must be opened when no other is left. Nothing else can have their numbers until
 * one is given up, in the same step in which it is needed.
 */
export class SpareDescriptors {
  readonly #count: number;
  readonly #kept: number[] = [];

  constructor(count: number) {
    this.#count = count;
    this.keep();
  }

  /** Closes one of them; returns whether there was one. */
  giveUp(): boolean {
    const fd = this.#kept.pop();
    if (fd !== undefined) closeQuietly(fd);
    return fd !== undefined;
  }

  /** Opens as many again as there may be and as are free: call it when another descriptor has been closed. */
  keep(): void {
    try {
      while (this.#kept.length < this.#count) this.#kept.push(openSync("/dev/null", "r"));
    } catch {
      // No descriptor is free yet.
    }
  }
}
