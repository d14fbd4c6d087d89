import { defaultBridgeOn } from "./on-engine.ts";

defaultBridgeOn("forky");
