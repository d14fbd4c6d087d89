/**
 * Declared names of a test, written as in a settings file, and as a container sees them.
 */
import { readSettings } from "../../../src/config/file/settings-file.ts";
import { DeclaredNames } from "../../../src/container/names/declared/declared-names.ts";
import { NAME_SETTINGS_DEFAULTS } from "../../../src/container/names/source/name-settings.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import type { DeclaredName } from "../../../src/base/model/declared-name.ts";
import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import { aContainer } from "./builders.ts";

/** `text` has the keys of a settings file after the version. */
export function declaredIn(text: string): readonly DeclaredName[] {
  return readSettings(Buffer.from(`version: 1\n${text}`), "s.yaml").values.records ?? [];
}

export function declarationsFor(text: string, container: ContainerFact = aContainer()): readonly VisibleNames[] {
  const names = new DeclaredNames(NAME_SETTINGS_DEFAULTS, () => undefined);
  names.set(declaredIn(text));
  return [names.namesFor(container) ?? []].flat();
}
