/** An engine's API of which a test says what it has. */
import type { EngineRequest } from "../../../src/container/watch/engine.ts";
import type { EngineCore } from "../../../src/features/contract.ts";

export function apiThat(answer: (request: EngineRequest) => unknown): EngineCore["api"] {
  return {
    network: async () => await Promise.resolve(undefined),
    readOne: async <T>(request: EngineRequest) => await Promise.resolve(answer(request) as T | undefined),
    readList: async <T>(request: EngineRequest) => await Promise.resolve(answer(request) as readonly T[] | undefined),
  };
}
