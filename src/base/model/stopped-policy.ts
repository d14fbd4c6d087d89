/**
 * StoppedPolicy: what the names of a container mean while it is not running. They stay local, so that no upstream server
 * learns them, and none answers in its place; `forward` is what Docker does.
 */
export const STOPPED_POLICIES = ["nxdomain", "empty", "last-address", "forward"] as const;
export type StoppedPolicy = (typeof STOPPED_POLICIES)[number];
