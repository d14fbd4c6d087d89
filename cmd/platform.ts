/**
 * Loads what calls libc. On a platform that koffi has no build for this fails, and then nothing of dns11 can work.
 */
import { Fault } from "../src/base/lib/fault.ts";

export async function onThisPlatform<T>(load: () => Promise<T>): Promise<T> {
  try {
    if (process.platform !== "linux") throw new Error("it needs Linux network namespaces");
    return await load();
  } catch (error) {
    throw new Fault("PLATFORM", `dns11 cannot run on ${process.platform}/${process.arch}, ${libcText()}`, {
      cause: error,
      remedy:
        "It calls libc through koffi, whose builds cover Linux on x64 and arm64; reinstall with optional packages.",
      isFinal: true,
    });
  }
}

export function libcText(): string {
  const { header } = process.report.getReport() as { readonly header?: { readonly glibcVersionRuntime?: string } };
  return header?.glibcVersionRuntime === undefined ? "without glibc" : `glibc ${header.glibcVersionRuntime}`;
}
