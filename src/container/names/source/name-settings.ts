/**
 * NameSettings: what the settings say about names. Names are compiled with them, so other settings take other sources.
 */
import {
  type HostNameSetting,
  type NameChoices,
  type HealthPolicy,
  LABEL_DEFAULTS,
  type LabelPolicy,
} from "../../../base/model/name-choices.ts";

export interface NameSettings {
  /** Which labels count. */
  readonly labels: LabelPolicy;
  /** What health checks mean, where a label does not say so; undefined: nothing, whatever labels say. */
  readonly health: HealthPolicy | undefined;
  /** What names are like, where a label does not say so; undefined: as in Docker, whatever labels say. */
  readonly choices: NameChoices | undefined;
  /** Whether containers resolve host.docker.internal without an entry. */
  readonly hostName: HostNameSetting;
}

/** With these, names are those of Docker's resolver. */
export const NAME_SETTINGS_DEFAULTS: NameSettings = {
  labels: LABEL_DEFAULTS,
  health: undefined,
  choices: undefined,
  hostName: "off",
};
