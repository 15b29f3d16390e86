/**
 * `tropism denials`: what agents and people may not do and tried, newest first.
 */
import type { Denial } from "@tropism/domain/denial"
import { RunId } from "@tropism/domain/ids"
import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { printRecords } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge } from "../terminal/time.ts"
import { limitFlag } from "./limit-flag.ts"

export const denialsCommand = Command.make(
  "denials",
  {
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only denials of this agent, by name or id"),
      Flag.optional
    ),
    run: Flag.String("run").pipe(
      Flag.withDescription("Only denials in this run, or of its suggestions"),
      Flag.withSchema(RunId),
      Flag.optional
    ),
    limit: limitFlag
  },
  ({ agent, limit, run }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const now = yield* Clock.currentTimeMillis
        const filter = {
          ...(Option.isSome(agent) ? { agentId: (yield* findAgent(access, agent.value)).id } : {}),
          ...(Option.isSome(run) ? { runId: run.value } : {})
        }
        const { hasMore, items } = yield* readPages(
          (query) => access.client.denials.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        yield* printRecords({
          records: items,
          hasMore,
          nothing: "No denials.",
          columns: [
            { title: "AGENT", cell: (one) => one.agentName ?? "" },
            { title: "INTERFACE", cell: (one) => doorText[one.door] },
            { title: "BY", cell: (one) => one.userId ?? "" },
            { title: "TOOL", cell: (one) => one.tool, shrinks: "end" },
            { title: "REASON", cell: (one) => one.detail, shrinks: "end" },
            { title: "RUN", cell: (one) => one.runId ?? "", paint: () => paint.dim },
            { title: "AGE", align: "right", cell: (one) => formatAge(one.at, now), paint: () => paint.dim }
          ]
        })
      })
    )
).pipe(Command.withDescription("List denied actions of agents and people"))

const doorText: Readonly<Record<Denial["door"], string>> = {
  run: "run",
  chat: "chat",
  subAgent: "sub-agent",
  approval: "approval",
  mcp: "MCP"
}
