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
    "(docker run --dns-opt). What dns11 itself does is set by forward.order: rotate (for rotate), forward.tcp (use-vc), " +
    "forward.budget (timeout:N) and forward.domain-needed (ndots:N)",
} as const;

export const NOT_SETTINGS_NAMES = Object.keys(NOT_SETTINGS);

/** Why there is no such setting; undefined for any other word. */
export function whyNoSetting(name: string): string | undefined {
  return Object.hasOwn(NOT_SETTINGS, name) ? NOT_SETTINGS[name as keyof typeof NOT_SETTINGS] : undefined;
}
