/**
 * PolicySubject: a container as policies choose it.
 */
import { POLICY_LABEL, type Policy, type PolicyScope } from "../model/policy.ts";

export interface PolicySubject {
  readonly id: string;
  readonly name: string;
  /** The container whose namespace it uses: itself, usually. */
  readonly ownerId: string;
  /** The engine has not described it yet, so it might have any policy. */
  readonly isUndescribed?: boolean;
  /** Names. */
  readonly networks: readonly string[];
  readonly project: string | null;
  readonly service: string | null;
  /** The value of a label, its image's among them: a policy gives nothing that one could want. */
  readonly label: (key: string) => string | undefined;
}

/** Why a container has a policy, in words; undefined if it has not. */
export function chosenBy(subject: PolicySubject, { name, scopes, isLeased }: Policy): string | undefined {
  if (isLeased !== true && subject.label(POLICY_LABEL)?.trim() === name) return `label ${POLICY_LABEL}`;
  const scope = scopes.find((each) => isMeant(subject, each));
  if (scope === undefined) return undefined;
  return scope.kind === "label" ? `label ${scope.key}` : `${scope.kind} ${scope.name}`;
}

function isMeant({ id, name, networks, project, service, label }: PolicySubject, scope: PolicyScope): boolean {
  switch (scope.kind) {
    case "network":
      return networks.includes(scope.name);
    case "container":
      return name === scope.name || id === scope.name;
    case "project":
      return project === scope.name;
    case "service":
      return service === scope.name;
    case "label": {
      const value = label(scope.key);
      return value !== undefined && (scope.value === undefined || value === scope.value);
    }
  }
}
