// The routes of a text that somebody else writes than whoever runs dns11.

import assert from "node:assert/strict";

import { type RouteText, namedServerText } from "../../src/base/model/server-text.ts";
import type { BadSettings } from "../../src/config/bad-settings.ts";
import { refusedShortly } from "./damage.ts";

export const SEED = 20_261_126;
export const INPUTS = 1_000;

// Undefined if it was refused, with a place for each mistake. Nobody who writes such a file names a container, or a
// node, which settings of dns11 alone may.
export function routesOf(
  read: () => readonly RouteText[],
  index: number,
  place: RegExp,
): readonly RouteText[] | undefined {
  let routes: readonly RouteText[];
  try {
    routes = read();
  } catch (error) {
    refusedShortly(error, index);
    for (const line of (error as BadSettings).lines) assert.match(line, place, `input ${index}`);
    return undefined;
  }
  for (const server of routes.flatMap(({ servers }) => servers)) {
    const text = namedServerText(server);
    assert.match(text, /^(host|[\d.]+(:\d+)?|\[[\da-f:.]+\]:\d+|[\da-f:.]+(%\w+)?)$/i, `input ${index}`);
  }
  return routes;
}
