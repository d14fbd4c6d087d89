/**
 * HostNameSetting: whether host.docker.internal, without an entry from `--add-host`, is the host's address on the
 * default bridge.
 */
export const HOST_NAME_SETTINGS = ["off", "gateway"] as const;

export type HostNameSetting = (typeof HOST_NAME_SETTINGS)[number];
