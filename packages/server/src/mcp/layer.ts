/** The services of the MCP endpoint beside tools: tasks, events and resource changes. Requires the tools for people. */
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
