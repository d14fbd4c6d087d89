/** Table: all breakages, in the order in which the documents list them. */
import type { Breakage } from "./breakage.ts";
import { CONTAINER_ROWS } from "./container-rows.ts";
import { NAME_ROWS } from "./name-rows.ts";
import { SERVER_ROWS } from "./server-rows.ts";

export const BREAKAGES: readonly Breakage[] = [...CONTAINER_ROWS, ...NAME_ROWS, ...SERVER_ROWS];
