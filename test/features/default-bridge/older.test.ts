import { defaultBridgeOn } from "./on-engine.ts";

defaultBridgeOn("bookworm");
defaultBridgeOn("trixie");
