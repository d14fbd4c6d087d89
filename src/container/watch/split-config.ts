/**
 * SplitConfig: what of a container's configuration its creator set, and what its image brings: the engine merges labels and
 * exposed ports of both. What the image has as well counts as the image's.
 */
import { LIMITS } from "../../base/limits.ts";
import type { BoundPort, ContainerFact } from "../facts/fact.ts";
import { type Labels, type SplitLabels, splitLabels } from "../facts/labels.ts";
import type { ContainerJson } from "./engine-json.ts";

/** What an image brings to its containers. */
export interface ImageConfig {
  readonly labels: Labels;
  /** Ports (EXPOSE), such as 80/tcp. */
  readonly exposed: ReadonlySet<string>;
}

export const NO_CONFIG: ImageConfig = { labels: {}, exposed: new Set() };

export interface SplitConfig extends SplitLabels, Pick<ContainerFact, "ports"> {}

/** Undefined: the image cannot be inspected, so that all may be the image's. */
export function splitConfig(json: ContainerJson, image: ImageConfig | "awaited" | undefined): SplitConfig {
  const ofImage = typeof image === "object" ? image.exposed : undefined;
  const exposed = portsIn(json.Config?.ExposedPorts);
  const bound = boundPorts(json);
  const isOwn = (port: string): boolean => ofImage?.has(port) === false;
  return {
    ...splitLabels(mergedLabels(json), typeof image === "object" ? image.labels : image),
    ports: {
      published: limited(portsIn(json.HostConfig?.PortBindings)),
      exposed: limited(exposed.filter((port) => isOwn(port))),
      ofImage: limited(exposed.filter((port) => !isOwn(port))),
      ...(bound.length > 0 && { bound }),
    },
  };
}

/** Whether something in it may be the image's. */
export function mayHaveImageConfig(json: ContainerJson): boolean {
  const published = new Set(portsIn(json.HostConfig?.PortBindings));
  const isMerged = portsIn(json.Config?.ExposedPorts).some((port) => !published.has(port));
  return isMerged || Object.keys(mergedLabels(json)).length > 0;
}

/** The container's labels, including those of its image. */
function mergedLabels(json: ContainerJson): Labels {
  return json.Config?.Labels ?? {};
}

export function portsIn(ports: Readonly<Record<string, unknown>> | null | undefined): string[] {
  return Object.keys(ports ?? {});
}

/** The ports that its creator has published; no others are bound. */
function boundPorts({ NetworkSettings: settings }: ContainerJson): readonly BoundPort[] {
  const all = Object.entries(settings?.Ports ?? {}).flatMap(([port, bindings]) =>
    (bindings ?? []).flatMap(({ HostIp: address = "", HostPort: text = "" }): BoundPort[] => {
      const hostPort = Number(text);
      return Number.isInteger(hostPort) && hostPort > 0 ? [{ port, address: address || "0.0.0.0", hostPort }] : [];
    }),
  );
  // Each has one for IPv4 and one for IPv6.
  return all.slice(0, 2 * LIMITS.labelPorts);
}

/** The author of an image decides how many there are. */
function limited(ports: readonly string[]): readonly string[] {
  return ports.slice(0, LIMITS.labelPorts);
}
