/** The service that polls for due work on behalf of all servers. Requires the reactions. */
import { Layer } from "effect"
import { Sweeps } from "./sweeps.ts"
import { WorkPoller } from "./work-poller.ts"
export const clusterLayer = Layer.merge(WorkPoller.layer, Sweeps.layer)
