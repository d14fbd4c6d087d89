/**
 * Declared names of a test, written as in a settings file, and as containers see them: of the feature that has them, by its setting, since
 * others are tested with them. Without it there are none.
 */
import type { DeclaredName } from "../../../src/base/model/declared-name.ts";
import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { mergeSettings } from "../../../src/config/merge-settings.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { SharedNames } from "../../../src/container/names/name-sources.ts";
import { FEATURES } from "../../../src/features.ts";
import type { Feature, RunCore } from "../../../src/features/contract.ts";
import { aContainer } from "./builders.ts";

const features: readonly Feature[] = FEATURES;
const code = await features.find(({ maps }) => maps?.["records"] !== undefined)?.load?.();

/** `text` has the keys of a settings file after the version. */
export function declaredIn(text: string): readonly DeclaredName[] {
  const { values } = readSettings(Buffer.from(`version: 1\n${text}`), "s.yaml");
  return ((values as Readonly<Record<string, unknown>>)["records"] ?? []) as readonly DeclaredName[];
}

/** As a source of names for a directory. */
export async function sharedDeclarations(text: string): Promise<SharedNames> {
  const settings = mergeSettings([readSettings(Buffer.from(`version: 1\n${text}`), "s.yaml")]);
  const run = { settings, onNames: () => undefined, updateViews: () => undefined } as unknown as RunCore;
  const feature = code?.open(run);
  await feature?.start?.();
  return { sources: feature?.names === undefined ? [] : [feature.names], machines: undefined };
}

export async function declarationsFor(
  text: string,
  container: ContainerFact = aContainer(),
): Promise<readonly VisibleNames[]> {
  const { sources } = await sharedDeclarations(text);
  return sources.flatMap(({ source }) => source.namesFor(container, undefined) ?? []);
}
