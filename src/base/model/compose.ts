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
  /** The project's files, separated by commas. */
  files: `${COMPOSE_PREFIX}project.config_files`,
  /** The folder that relative paths in the files start from. */
  folder: `${COMPOSE_PREFIX}project.working_dir`,
  /** The hash of the service's part of the files: the same for all containers that one `up` has made. */
  hash: `${COMPOSE_PREFIX}config-hash`,
} as const;

/** A key in the file of a Compose project, below a service. The files are read as far as advice about a change of them needs it. */
export interface ComposeKeyLocation {
  readonly file: string;
  readonly service: string;
}

export interface ComposeServiceText {
  /** Where a key of the service is; with several files, in the one that Compose reads last. */
  readonly keys: ReadonlyMap<string, ComposeKeyLocation>;
  /** The service's definition in the first file that has it, for a key that no file has yet. */
  readonly location: ComposeKeyLocation;
  /** Its networks by their keys in the file; undefined without the key `networks`. */
  readonly networks: { readonly names: readonly string[]; readonly isMap: boolean } | undefined;
  readonly networkMode: string | undefined;
  readonly profiles: readonly string[];
  /** `scale`, or `deploy.replicas`, and which of them; undefined where the file has no number. */
  readonly replicas: { readonly key: string; readonly count: number } | undefined;
  /** Which file has an entry of `extra_hosts`; the names are in lower case. */
  readonly extraHosts: ReadonlyMap<string, ComposeKeyLocation>;
}

export interface ComposeProjectText {
  readonly services: ReadonlyMap<string, ComposeServiceText>;
  /** The key of each network in the file, and its name where the file gives it one. */
  readonly networks: ReadonlyMap<string, string | undefined>;
}
