/**
 * Malloc: what the C library keeps of freed memory. Nothing of it exists outside glibc, and nothing depends on it.
 */
import { bind } from "./libc.ts";

const M_TRIM_THRESHOLD = -1;

/** Returns what is free to the kernel. */
export function trimMalloc(): void {
  withGlibc(() => bind<(pad: number) => number>("int malloc_trim(size_t pad)")(0));
}

/** Unless told, glibc keeps up to twice the largest block that was ever freed. */
export function limitFreeMemory(bytes: number): void {
  withGlibc(() => {
    const mallopt = bind<(option: number, value: number) => number>("int mallopt(int option, int value)");
    mallopt(M_TRIM_THRESHOLD, bytes);
  });
}

function withGlibc(work: () => void): void {
  try {
    work();
  } catch {
    // Another C library has no such function.
  }
}
