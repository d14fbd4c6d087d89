/**
 * HealthPolicy: what Docker's health checks mean for a name that several containers have. A name is never left without an
 * address because of it, and a container keeps its own name.
 */
export const HEALTH_POLICIES = ["ignore", "last-resort", "exclude"] as const;
export type HealthPolicy = (typeof HEALTH_POLICIES)[number];

/** The result of Docker's check; undefined for a container without one. */
export type Health = "starting" | "healthy" | "unhealthy";

/** Whether a container is left out of the names that it shares, as long as another one is not. */
export function isLeftOut(health: Health | undefined, policy: HealthPolicy): boolean {
  if (policy === "ignore") return false;
  return health === "unhealthy" || (health === "starting" && policy === "exclude");
}
