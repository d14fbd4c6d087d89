/**
 * ClosedNetwork: a network of the Docker daemon that an enforced policy is for. Its containers are refused everything until each
 * is known.
 */
import type { AddressBlock } from "../../base/model/address-block.ts";

export interface ClosedNetwork {
  readonly name: string;
  /** Whatever comes from there has no source address that counts; undefined where there is none. */
  readonly bridge: string | undefined;
  readonly blocks: readonly AddressBlock[];
}
