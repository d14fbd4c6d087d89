// Declared names, written as in a settings file, as a container sees them.

import { LABEL_DEFAULTS } from "../../../src/base/model/name-choices.ts";
import type { VisibleNames } from "../../../src/base/model/visible-names.ts";
import type { ContainerFact } from "../../../src/container/facts/fact.ts";
import { DeclaredNames } from "../../../src/features/records/names.ts";
import { declaredIn } from "../../support/scripted/declarations.ts";

/** `text` has the keys of a settings file after the version. */
export function declarationsFor(text: string, container: ContainerFact): readonly VisibleNames[] {
  const names = new DeclaredNames({ labels: LABEL_DEFAULTS });
  names.set(declaredIn(text));
  return [names.namesFor(container) ?? []].flat();
}
