/**
 * VisibleSetting: whose names a container resolves: those of its own networks, as with Docker; also NAME.NETWORK of
 * other networks of its Compose project; or of all networks.
 */
export const VISIBLE_SETTINGS = ["network", "project", "all"] as const;

export type VisibleSetting = (typeof VISIBLE_SETTINGS)[number];
