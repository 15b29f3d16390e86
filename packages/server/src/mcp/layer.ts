/** What the MCP door offers beside tools: runs as tasks, the graph as a source of events, and changes of resources. It needs the tools of people. */
import { Layer } from "effect"
import { Callbacks } from "./event-callbacks.ts"
import { EventDeliverer, EventStreams } from "./event-delivery.ts"
import { EventSubscribing, EventSubscriptions } from "./event-subscriptions.ts"
import { EventReading } from "./events.ts"
import { ResourceReaders } from "./resource-readers.ts"
import { ResourceUpdates, SessionSubscriptions } from "./resources.ts"
import { DeclinedInputs } from "./run-task.ts"
import { RunTasks } from "./run-tasks.ts"
export const mcpLayer = Layer.mergeAll(
  RunTasks.layer,
  ResourceUpdates.layer,
  EventStreams.layer,
  EventSubscribing.layer,
  EventDeliverer.layer
).pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      EventReading.layer,
      DeclinedInputs.layer,
      Callbacks.layer,
      EventSubscriptions.layer,
      ResourceReaders.layer,
      SessionSubscriptions.layer
    )
  )
)
