/**
 * Folds every log of a project again and reports where the records do not follow from it.
 *
 * It reads one database snapshot in pages, so concurrent writes cause no false differences and neither a long log nor a damaged project
 * needs much memory. A snapshot holds a connection, so its duration and the number of concurrent verifications are limited. It writes
 * nothing: people judge the differences.
 */
import { type ContextName, decodeEvent } from "@tropism/domain/context-event"
import { foldVersion } from "@tropism/domain/context-snapshot"
import type { ProjectId } from "@tropism/domain/ids"
import {
  type CallRecord,
  judgeLog,
  type LogFault,
  type RunRecord,
  type SnapshotRecord
} from "@tropism/domain/log-judge"
import type { Difference, Verification } from "@tropism/domain/verification"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Contexts } from "../contexts/contexts.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { makeTurns } from "../database/export-backpressure.ts"
import { makeGraphVerification, type TellDifferences } from "../graph/verification.ts"
import { agentLimits, runLimits } from "../limits.ts"

/** The verification exceeded its time limit, including the time in the queue. */
export class VerificationTooLong extends Schema.TaggedError<VerificationTooLong>()(
  "VerificationTooLong",
  {}
) {}

export class Verifier extends Context.Service<
  Verifier,
  {
    /** Verifies a whole project as of one moment, when its turn has come. */
    readonly verify: (projectId: ProjectId) => Effect.Effect<Verification, VerificationTooLong>
  }
>()("@tropism/server/run/Verifier") {
  static readonly layer = Layer.effect(
    Verifier,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const contexts = yield* Contexts
      const graph = yield* makeGraphVerification
      const inTurn = yield* makeTurns(runLimits.concurrentVerifications)

      /** Reads the records that belong to a context's log. */
      const recordsOf = Effect.fnUntraced(function* (head: HeadRow) {
        const { projectId } = yield* ProjectTransaction
        const runs = yield* sql<RunRecord>`
          select id, status, step_count, usage from kb.agent_runs where project_id = ${projectId} and context_name = ${head.name}`
        const calls = yield* sql<CallRecord>`
          select call.run_id, call.call_id, call.status from kb.tool_calls call join kb.agent_runs run on run.id = call.run_id
          where run.project_id = ${projectId} and run.context_name = ${head.name}`
        const snapshots = yield* sql<SnapshotRecord>`
          select number, state from kb.context_snapshots
          where project_id = ${projectId} and context_name = ${head.name} and version = ${foldVersion}`
        return { ...head, runs, calls, snapshots }
      })

      const verifyContext = Effect.fnUntraced(function* (head: HeadRow, tell: TellDifferences) {
        const records = yield* recordsOf(head)
        const judge = judgeLog(records)
        const tellFaults = (faults: ReadonlyArray<LogFault>) =>
          tell(
            faults.map((fault): Difference => ({ ...fault, kind: "context", id: head.name })),
            0
          )
        let events = 0
        while (true) {
          const page = yield* contexts.read(head.name, events, agentLimits.logPageEvents)
          // Give other fibers a turn before judging a page.
          yield* Effect.yieldNow
          tellFaults(judge.read(page.map(decodeEvent)))
          events += page.length
          if (page.length < agentLimits.logPageEvents) break
        }
        tellFaults(judge.end())
        return { events, runs: records.runs.length }
      })

      const verifyContexts = Effect.fnUntraced(function* (tell: TellDifferences) {
        const { projectId } = yield* ProjectTransaction
        let after = ""
        const sum = { contexts: 0, events: 0, runs: 0 }
        while (true) {
          const heads = yield* sql<HeadRow>`
            select name, last_event_number, open_turn_number from kb.contexts
            where project_id = ${projectId} and name > ${after} and forgotten_at is null order by name limit ${runLimits.verifyPageContexts}`
          for (const head of heads) {
            const found = yield* verifyContext(head, tell)
            sum.contexts += 1
            sum.events += found.events
            sum.runs += found.runs
          }
          const last = heads.at(-1)
          if (last === undefined) return sum
          after = last.name
        }
      }, orDie)

      const verifyAll = Effect.gen(function* () {
        const differences: Array<Difference> = []
        let differenceCount = 0
        const tell: TellDifferences = (found, more) => {
          differenceCount += found.length + more
          differences.push(...found.slice(0, runLimits.differencesShown - differences.length))
        }
        const objects = yield* graph.verify("object", tell)
        const relationships = yield* graph.verify("relationship", tell)
        const logs = yield* verifyContexts(tell)
        const verification: Verification = {
          checked: {
            objects: objects.entities,
            relationships: relationships.entities,
            versions: objects.versions + relationships.versions,
            contexts: logs.contexts,
            contextEvents: logs.events,
            runs: logs.runs
          },
          differenceCount,
          differences
        }
        return verification
      })

      const verify = Effect.fn("Verifier.verify")((projectId: ProjectId) =>
        Effect.timeoutOrElse(inTurn(projectId, database.inSnapshot(projectId, verifyAll)), {
          duration: runLimits.verifyMaxMs,
          orElse: () => Effect.fail(new VerificationTooLong())
        })
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
