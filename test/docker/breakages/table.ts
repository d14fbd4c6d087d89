/** Table: all breakages, in the order in which the documents list them. */
import type { Breakage } from "./breakage.ts";
import { CONTAINER_ROWS, NETWORK_ROWS } from "./container-rows.ts";
import { CLIENT_ROWS, NAME_ROWS } from "./name-rows.ts";
import { SERVER_ROWS } from "./server-rows.ts";

export const BREAKAGES: readonly Breakage[] = [
  ...NETWORK_ROWS,
  ...CONTAINER_ROWS,
  ...NAME_ROWS,
  ...CLIENT_ROWS,
  ...SERVER_ROWS,
];
