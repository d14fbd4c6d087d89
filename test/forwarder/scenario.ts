import type { Scene } from "./scene.ts";

/** What happens between a client, dns11 and servers, and what must come of it. */
export interface Scenario {
  /** The test or the paragraph elsewhere whose facts it has. */
  readonly from: string;
  /** What holds. */
  readonly title: string;
  /** Where dns11 does otherwise than that test expects, why; what the scenario asserts is what dns11 does. */
  readonly differs?: string;
  readonly settings?: readonly string[];
  /** How many servers the zone has; one unless said. */
  readonly servers?: number;
  readonly run: (scene: Scene) => Promise<void>;
}

/** A test elsewhere that says nothing of a forwarder such as this. */
export interface Unsuitable {
  readonly from: string;
  readonly why: string;
}
