/**
 * Fills the port by which people's tools reach agents, their runs and what they ask.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 */
import { Effect, Layer } from "effect"
import { AgentDesk } from "../tool/person-tool.ts"
import { makeAgentTools } from "./agent-tools.ts"
import { makeReviewTools } from "./review-tools.ts"
import { makeRunTools } from "./run-tools.ts"

/** The tools of the `agents` server; agents never have them (decision 0053). */
export const agentDesk = Layer.effect(
  AgentDesk,
  Effect.map(Effect.all([makeAgentTools, makeRunTools, makeReviewTools]), (tools) => ({
    tools: tools.flat()
  }))
)
