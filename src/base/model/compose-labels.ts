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
} as const;
