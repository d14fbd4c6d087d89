/**
 * Decision: whether dns11 serves a container, and if not, why, as `dns11 ps` prints it.
 */
import type { OnlyFilter } from "../../base/model/container-choice.ts";
import { LIMITS } from "../../base/limits.ts";
import { shortened } from "../../base/lib/text.ts";
import { type DefaultBridgeSetting, LABEL_DEFAULTS, type LabelPolicy } from "../../base/model/name-choices.ts";
import type { SkipCode } from "../../base/model/finding.ts";
import { type ContainerFact, isUserDefined, hasOwnStack, sharedWith } from "../facts/fact.ts";
import { CHOICE_LABELS, choiceWarnings } from "../facts/label-choices.ts";
import { DNS_LABEL, labelRoutes } from "../registry/label-routes.ts";
import { type Labels, effectiveLabels, ignoredLabelWarning } from "../facts/labels.ts";

export type Decision =
  | { readonly kind: "serve"; readonly warning?: string }
  | { readonly kind: "skip"; readonly code: SkipCode; readonly reason: string; readonly warning?: string };

export const ENABLE_LABEL = "io.dns11.enable";
const YES = new Set(["true", "1", "yes", "on"]);
const NO = new Set(["false", "0", "no", "off"]);

/** `other` is an ID, or the name where that is known. */
export function sharedText(other: string): string {
  return `it shares the network namespace of container ${other} and is served exactly if that one is`;
}

/** `warningsOf`: what else is wrong with the labels that count. */
export function decide(
  fact: ContainerFact,
  only: readonly OnlyFilter[],
  policy: LabelPolicy = LABEL_DEFAULTS,
  defaultBridge: DefaultBridgeSetting = "off",
  isEnforced: () => boolean = () => false,
  warningsOf: (labels: Labels) => readonly (string | undefined)[] = () => [],
): Decision {
  const { networkMode } = fact;
  if (networkMode === "host") return skip("host-network", "it uses the host's network");
  const other = sharedWith(networkMode);
  if (other !== undefined) return skip("shares-namespace", sharedText(other.slice(0, 12)));
  // Opting out is the only setting that an image may make for its containers.
  const isFromImage = !Object.hasOwn(fact.labels, ENABLE_LABEL);
  const label = readLabel((isFromImage ? fact.imageLabels.labels : fact.labels)[ENABLE_LABEL]);
  const whose = isFromImage ? "image's " : "";
  // Docker's resolver would answer it anything.
  if (!label.isEnabled && !isEnforced()) return skip("opted-out", `its ${whose}label ${ENABLE_LABEL} disables dns11`);
  const labels = effectiveLabels(fact, policy);
  const warnings = [
    label.warning,
    label.isEnabled ? undefined : `its ${whose}label ${ENABLE_LABEL} is ignored, because a policy is enforced for it`,
    labelRoutes(labels, policy.servers).warning,
    ignoredLabelWarning(DNS_LABEL, fact, policy),
    ...choiceWarnings(labels),
    ...CHOICE_LABELS.map((key) => ignoredLabelWarning(key, fact, policy)),
    ...warningsOf(labels),
  ];
  const decision = decideByNetworks(fact, isSelected(fact, labels, only), defaultBridge);
  if (decision.kind === "serve" || decision.code !== "not-selected") return withWarnings(decision, warnings);
  const keys = only.filter((filter) => filter.kind === "label").map(({ key }) => key);
  return withWarnings(decision, [...warnings, ...keys.map((key) => ignoredLabelWarning(key, fact, policy))]);
}

function decideByNetworks(
  fact: ContainerFact,
  isSelectedByFilters: boolean,
  defaultBridge: DefaultBridgeSetting,
): Decision {
  const userDefined = fact.endpoints.filter((endpoint) => isUserDefined(endpoint.networkName));
  if (userDefined.length === 0 && fact.networkMode === "none")
    return skip("no-network", "it has no network (network mode none)");
  if (userDefined.length === 0) {
    const reason = reasonNotCaptured(fact, defaultBridge);
    if (reason !== undefined) return reason;
  }
  if (!isSelectedByFilters) return skip("not-selected", "no --only filter matches it");
  if (hasOwnStack(fact)) {
    const why = "has a network stack of its own, whose queries never reach 127.0.0.11";
    return skip("own-stack", `its runtime ${fact.runtime ?? ""} ${why}`);
  }
  return { kind: "serve" };
}

/** Why a container without Docker's resolver is not served; undefined if it is. */
function reasonNotCaptured(
  { onDefaultBridge, nameservers }: ContainerFact,
  setting: DefaultBridgeSetting,
): Decision | undefined {
  if (onDefaultBridge === undefined || setting === "off") {
    const hint = onDefaultBridge === undefined ? "" : "; the setting default-bridge: names serves it all the same";
    return skip(
      "default-network-only",
      `it is on no user-defined network, so Docker gives it no resolver at 127.0.0.11${hint}`,
    );
  }
  if (nameservers.kind !== "captured") {
    return skip("no-nameserver", "its resolv.conf cannot be read, or is not the one that Docker made for it");
  }
  if (nameservers.servers.length > 0) return undefined;
  return skip("no-nameserver", "its resolv.conf names no nameserver whose queries dns11 can answer");
}

/** All of the labels and any of the networks must match, as with several filters of `docker ps --filter`. */
function isSelected({ endpoints }: ContainerFact, labels: Labels, only: readonly OnlyFilter[]): boolean {
  const networks = only.filter((filter) => filter.kind === "network");
  const hasLabels = only.every((filter) => {
    if (filter.kind !== "label") return true;
    if (!Object.hasOwn(labels, filter.key)) return false;
    return filter.value === undefined || filter.value === labels[filter.key];
  });
  const isOnNetwork = (name: string): boolean => endpoints.some((endpoint) => endpoint.networkName === name);
  return hasLabels && (networks.length === 0 || networks.some(({ name }) => isOnNetwork(name)));
}

function readLabel(text: string | undefined): { readonly isEnabled: boolean; readonly warning?: string } {
  const value = text?.trim().toLowerCase();
  if (value === undefined || YES.has(value)) return { isEnabled: true };
  if (NO.has(value)) return { isEnabled: false };
  return {
    isEnabled: true,
    warning: `invalid label ${ENABLE_LABEL}="${shortened(text ?? "", LIMITS.labelCharsShown)}": use true or false; the label is ignored`,
  };
}

/** A container that crashed dns11 more than once. */
export function quarantined(reason: string): Decision {
  return skip("quarantined", reason);
}

function skip(code: SkipCode, reason: string): Decision {
  return { kind: "skip", code, reason };
}

export function withWarnings(decision: Decision, warnings: readonly (string | undefined)[]): Decision {
  const warning = warnings.filter((text) => text !== undefined).join("; ");
  return warning === "" ? decision : { ...decision, warning };
}
