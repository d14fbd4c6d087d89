// Fuzz of labels of containers, from fragments that mean something and bytes that do not.

import { test } from "node:test";

import { tryAnyLabels } from "./any-labels.ts";

test("labels of any text", () => tryAnyLabels());
