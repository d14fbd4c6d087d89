// Environment variables for the tests of one file, which other files must not see: unit tests share processes.

import { after, before } from "node:test";

export function useEnvironment(values: Readonly<Record<string, string | undefined>>): void {
  const earlier = Object.fromEntries(Object.keys(values).map((name) => [name, process.env[name]]));
  before(() => set(values));
  after(() => set(earlier));
}

function set(values: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
}
