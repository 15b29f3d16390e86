/**
 * Every part behind the MCP door, in the order in which clients see what they offer.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * To offer more is to add a part here.
 */
import { Effect } from "effect"
import type { McpPart } from "./part.ts"

/** The parts, each with the services that it needs. */
export const parts: Effect.Effect<ReadonlyArray<McpPart>> = Effect.all([])
