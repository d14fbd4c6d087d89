/**
 * Platform: loads modules that call libc. This fails where koffi has no build, and dns11 cannot work there at all.
 */
import { Fault, reasonOf } from "../../src/base/lib/fault.ts";
import type * as DoctorModules from "./doctor-modules.ts";
import type * as HostModules from "./host-modules.ts";

export async function onThisPlatform<T>(load: () => Promise<T>): Promise<T> {
  try {
    if (process.platform !== "linux") throw new Error("it needs Linux network namespaces");
    return await load();
  } catch (error) {
    throw new Fault("PLATFORM", `dns11 cannot run on ${process.platform}/${process.arch}, ${libcText()}`, {
      // Where a package is missing, Node lists who required it.
      cause: reasonOf(error).split("\n", 1)[0],
      remedy:
        "Supported: Linux on x64 or arm64 with glibc. Only if koffi is missing there: npm i -g --include=optional ./dns11-*.tgz",
      isFinal: true,
    });
  }
}

/** What works on this machine: the engine side, the service. */
export async function hostModules(): Promise<typeof HostModules> {
  return await onThisPlatform(async () => await import("./host-modules.ts"));
}

export async function doctorModules(): Promise<typeof DoctorModules> {
  return await onThisPlatform(async () => await import("./doctor-modules.ts"));
}

export function libcText(): string {
  const { header } = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined ? "without glibc" : `glibc ${header.glibcVersionRuntime}`;
}
