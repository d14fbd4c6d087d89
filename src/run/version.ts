/**
 * Version: the version of the running package.
 */
import { readFileSync } from "node:fs";

/** By the name of the package: the path differs between the bundled program and the compiled module. */
const PACKAGE = new URL(import.meta.resolve("dns11/package.json"));

export const VERSION = (JSON.parse(readFileSync(PACKAGE, "utf8")) as { readonly version: string }).version;
