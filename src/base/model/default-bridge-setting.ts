/**
 * DefaultBridgeSetting: whether containers on Docker's default bridge are served, and see each other by name.
 */
export const DEFAULT_BRIDGE_SETTINGS = ["off", "names"] as const;

export type DefaultBridgeSetting = (typeof DEFAULT_BRIDGE_SETTINGS)[number];
