/** Provides agents, their versions and their definitions. It needs the contexts. */
import { Layer } from "effect"
import { Agents } from "./agents.ts"
import { TodoAssistants } from "./todo-assistants.ts"
import { Declarations, Versions } from "./versions.ts"
export const agentsLayer = Layer.provideMerge(
  Layer.mergeAll(Versions.layer, Declarations.layer, TodoAssistants.layer),
  Agents.layer
)
