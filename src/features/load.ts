import { FEATURES } from "../features.ts";
import { CHECKS, type Checks } from "../base/model/finding.ts";
import type { Feature, FeatureCleanup, FeatureCode, FeatureReport, InNode } from "./contract.ts";

/** The code of all features, for a run. */
export async function loadFeatures(): Promise<readonly FeatureCode[]> {
  return await loadEach(({ load }) => load?.());
}

/** What they say where none of them runs. */
export async function loadReports(): Promise<readonly FeatureReport[]> {
  return await loadEach(({ report }) => report?.());
}

/** The checks of the doctor, also those that only a feature makes. */
export async function loadChecks(): Promise<Checks> {
  return Object.assign({}, CHECKS, ...(await loadReports()).map(({ checks }) => checks)) as Checks;
}

/** What they remove of a killed run. */
export async function loadCleanups(): Promise<readonly FeatureCleanup[]> {
  return await loadEach(({ cleanup }) => cleanup?.());
}

/** Undefined where no feature can run inside of a node. */
export async function loadInNode(): Promise<InNode | undefined> {
  const [inNode] = await loadEach(({ inNode: load }) => load?.());
  return inNode;
}

async function loadEach<T>(part: (feature: Feature) => Promise<T> | undefined): Promise<readonly T[]> {
  const loaded = await Promise.all(FEATURES.map(async (feature) => await part(feature)));
  return loaded.filter((each) => each !== undefined);
}
