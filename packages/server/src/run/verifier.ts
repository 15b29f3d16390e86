/**
 * Folds everything anew and tells where the records do not follow from it.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * One snapshot of the project, read in pages, so what happens meanwhile is no
 * difference. It writes nothing: what is wrong is for people to judge.
 */
import { type ContextName, decodeEvent, type LoggedEvent } from "@tropism/domain/context-event"
import { foldVersion } from "@tropism/domain/context-snapshot"
import type { ProjectId } from "@tropism/domain/ids"
import {
  type CallRecord,
  type Difference,
  findLogFaults,
  type RunRecord,
  type SnapshotRecord,
  type Verification
} from "@tropism/domain/verification"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Contexts } from "../agent/contexts.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { makeGraphVerification } from "../graph/graph-verification.ts"
import { agentLimits, runLimits } from "../limits.ts"

export class Verifier extends Context.Service<
  Verifier,
  {
    /** Compares a whole project, as of one moment. */
    readonly verify: (projectId: ProjectId) => Effect.Effect<Verification>
  }
>()("@tropism/server/run/Verifier") {
  static readonly layer = Layer.effect(
    Verifier,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const contexts = yield* Contexts
      const graph = yield* makeGraphVerification

      const wholeLog = Effect.fnUntraced(function* (name: ContextName) {
        const log: Array<LoggedEvent> = []
        while (true) {
          const page = yield* contexts.read(name, log.length, agentLimits.logPageEvents)
          for (const event of page) log.push(decodeEvent(event))
          if (page.length < agentLimits.logPageEvents) return log
        }
      })

      const verifyContext = Effect.fnUntraced(function* (head: HeadRow) {
        const { projectId } = yield* ProjectTransaction
        const log = yield* wholeLog(head.name)
        const runs = yield* sql<RunRecord>`
          select id, status, step_count, usage, summary from kb.agent_runs where project_id = ${projectId} and context_name = ${head.name}`
        const calls = yield* sql<CallRecord>`
          select call.run_id, call.call_id, call.status from kb.tool_calls call join kb.agent_runs run on run.id = call.run_id
          where run.project_id = ${projectId} and run.context_name = ${head.name}`
        const snapshots = yield* sql<SnapshotRecord>`
          select number, state from kb.context_snapshots
          where project_id = ${projectId} and context_name = ${head.name} and version = ${foldVersion}`
        const faults = findLogFaults({ ...head, log, runs, calls, snapshots })
        return {
          events: log.length,
          runs: runs.length,
          differences: faults.map((fault): Difference => ({ ...fault, kind: "context", id: head.name }))
        }
      })

      const verifyContexts = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        let after = ""
        const sum = { contexts: 0, events: 0, runs: 0, differences: new Array<Difference>() }
        while (true) {
          const heads = yield* sql<HeadRow>`
            select name, last_event_number, open_turn_number from kb.contexts
            where project_id = ${projectId} and name > ${after} and forgotten_at is null order by name limit ${runLimits.verifyPageContexts}`
          for (const head of heads) {
            const found = yield* verifyContext(head)
            sum.contexts += 1
            sum.events += found.events
            sum.runs += found.runs
            for (const difference of found.differences) sum.differences.push(difference)
          }
          const last = heads.at(-1)
          if (last === undefined) return sum
          after = last.name
        }
      }).pipe(orDie)

      const verify = Effect.fn("Verifier.verify")((projectId: ProjectId) =>
        database.inSnapshot(
          projectId,
          Effect.gen(function* () {
            const objects = yield* graph.verify("object")
            const relationships = yield* graph.verify("relationship")
            const logs = yield* verifyContexts
            const differences = [...objects.differences, ...relationships.differences, ...logs.differences]
            const verification: Verification = {
              checked: {
                objects: objects.entities,
                relationships: relationships.entities,
                versions: objects.versions + relationships.versions,
                contexts: logs.contexts,
                contextEvents: logs.events,
                runs: logs.runs
              },
              differenceCount: differences.length,
              differences: differences.slice(0, runLimits.differencesShown)
            }
            return verification
          })
        )
      )

      return Verifier.of({ verify })
    })
  )
}

interface HeadRow {
  readonly name: ContextName
  readonly lastEventNumber: number
  readonly openTurnNumber: number | null
}
