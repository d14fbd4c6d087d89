/**
 * ComposeLabels: the labels that Docker Compose gives to what it creates.
 */
export const COMPOSE_PREFIX = "com.docker.compose.";

export const COMPOSE_LABEL = {
  project: `${COMPOSE_PREFIX}project`,
  service: `${COMPOSE_PREFIX}service`,
  number: `${COMPOSE_PREFIX}container-number`,
  /** "True" on the containers of `docker compose run`, which have no name of their service. */
  oneOff: `${COMPOSE_PREFIX}oneoff`,
  /** Its files, separated by commas. */
  files: `${COMPOSE_PREFIX}project.config_files`,
  /** The folder that paths in them start from. */
  folder: `${COMPOSE_PREFIX}project.working_dir`,
  /** The hash of the service's part of the files: the same for all containers that one `up` has made. */
  hash: `${COMPOSE_PREFIX}config-hash`,
} as const;
