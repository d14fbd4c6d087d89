/** Malloc: limits how much freed memory the C library keeps. The functions exist in glibc only, and nothing depends on them. */
import { bind } from "./libc.ts";

const M_TRIM_THRESHOLD = -1;

/** Returns free memory to the kernel. */
export function trimMalloc(): void {
  withGlibc(() => bind<(pad: number) => number>("int malloc_trim(size_t pad)")(0));
}

/** By default glibc keeps up to twice the largest block that was ever freed. */
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
