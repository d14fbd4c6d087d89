/**
 * Bundle: what a bug report needs, as one archive.
 */
import { gzipSync } from "node:zlib";

import { type BundleOptions, bundleContents } from "./contents.ts";
import { tarOf } from "./tar.ts";

export interface Bundle {
  readonly files: number;
  readonly archive: Buffer;
}

export async function bundleOf(options: BundleOptions): Promise<Bundle> {
  const files = await bundleContents(options);
  return { files: files.length, archive: gzipSync(tarOf(files, new Date())) };
}
