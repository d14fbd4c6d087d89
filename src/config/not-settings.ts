/**
 * NotSettings: settings of Docker that are none here, because the resolver library in the container applies them, or because they
 * have another name. The error for them says where to set them.
 */
const NOT_SETTINGS = {
  "dns-search":
    "search lists are applied by the resolver library in the container, which reads its own resolv.conf: " +
    "set them on the container (docker run --dns-search) or on the engine (dockerd --dns-search)",
  "dns-opt":
    "options of resolv.conf are applied by the resolver library in the container: set them on the container " +
    "(docker run --dns-opt). For the servers that dns11 queries, use forward.order: rotate in place of rotate, forward.tcp of " +
    "use-vc, forward.budget of timeout:N, and forward.domain-needed of ndots:N",
} as const;

export const NOT_SETTINGS_NAMES = Object.keys(NOT_SETTINGS);

/** Why there is no such setting; undefined for any other word. */
export function whyNoSetting(name: string): string | undefined {
  return Object.hasOwn(NOT_SETTINGS, name) ? NOT_SETTINGS[name as keyof typeof NOT_SETTINGS] : undefined;
}
