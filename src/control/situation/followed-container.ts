/**
 * FollowedContainer: what somebody follows who has named a container: that one, and whoever has the name after it. Compose makes
 * a container anew for each change.
 */

/** `id`: of the container that has the name now. `nameOf` returns the names of running containers. */
export function followedContainer(
  nameOrId: string,
  id: string,
  nameOf: (containerId: string) => string | undefined,
): (containerId: string) => boolean {
  return (each) => each === id || nameOf(each) === nameOrId;
}
