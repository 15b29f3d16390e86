/**
 * Every part behind the MCP door, in the order in which clients see what they offer.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * To offer more is to add a part here.
 */
import { Effect } from "effect"
import { eventsPart } from "./events-part.ts"
import { tasksPart } from "./tasks-part.ts"
import { peoplePrompts } from "./people-prompts.ts"
import { peopleResources } from "./people-resources.ts"
import { peopleTools } from "./people-tools.ts"

/** The parts, each with the services that it needs. */
export const parts = Effect.all([peopleTools, peopleResources, peoplePrompts, tasksPart, eventsPart])
