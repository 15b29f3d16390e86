/**
 * What waits for people: suggested by agents, read and decided by a person.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * The verbs of a task lie in files of their own: `suggesting.ts` puts a change
 * before people, `deciding.ts` takes the decision, `reading.ts` reads.
 */
import type { AgentId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import type { SuggestionTask, Task, TaskRevision } from "@tropism/domain/task"
import { Context, Effect, Layer } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/refused.ts"
import { type Decider, type DecisionRefused, type Edit, makeDeciding } from "./deciding.ts"
import { makeTaskReading, type TaskFilter } from "./reading.ts"
import { makeRerunning } from "./rerunning.ts"
import { makeWaiting, type Wait } from "./waiting.ts"
import { makeSuggesting, type Suggested, type Suggestion } from "./suggesting.ts"
import type { UndoRefused } from "./undo-refused.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Tasks extends Context.Service<
  Tasks,
  {
    /** Lets a change wait for people: in a task of its own, or in the one in which its agent suggests the same already. */
    readonly suggest: (suggestion: Suggestion) => Effect.Effect<Suggested, ChangeRefused, ProjectTransaction>
    /** A task of the project, or a todo of the reader. */
    readonly get: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** What `get` finds, which nobody else changes for the rest of the transaction. */
    readonly hold: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** The tasks of the project and the todos of the reader, newest first. */
    readonly list: (
      filter: TaskFilter,
      reader: UserId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Task>>
    /** The first suggestions of a run that wait for a decision, oldest first. */
    readonly undecidedOf: (runId: RunId, limit: number) => Read<ReadonlyArray<SuggestionTask>>
    /** What a suggestion said before it was refined, newest first. */
    readonly revisions: (
      id: TaskId,
      before: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<TaskRevision>>
    /** Says for whom, or until when, a suggestion or a question waits; undefined when there is no such task. */
    readonly wait: (
      id: TaskId,
      by: UserId,
      terms: Wait
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Ends the wait of suggestions whose time is up, a batch of them; answers how many. */
    readonly expire: Read<number>
    /** Makes the suggested change, or takes back what an undo plans; undefined when there is no such task. */
    readonly approve: (
      id: TaskId,
      by: Decider,
      digest: string | null,
      edit: Edit | null,
      /** Ids of the items of an undo that stay as they are. */
      leaveOut?: ReadonlyArray<string>
    ) => Effect.Effect<Task | undefined, DecisionRefused | UndoRefused | ChangeRefused, ProjectTransaction>
    /** Ends the task with no change; undefined when there is no such task. */
    readonly reject: (
      id: TaskId,
      by: Decider,
      reason: string | null,
      digest?: string | null
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Rejects every suggestion of an agent that waits, also of one that was deleted; undefined when there is no such agent. */
    readonly rejectAll: (
      agentId: AgentId,
      by: UserId,
      reason: string | null
    ) => Read<ReadonlyArray<TaskId> | undefined>
    /** Names the run that looks at a suggestion again; false when it does not wait, another looks already, or somebody holds it. */
    readonly rerunBy: (id: TaskId, runId: RunId) => Read<boolean>
    /** Whether the time of a task that waits is up. */
    readonly isOver: (id: TaskId) => Read<boolean>
  }
>()("@tropism/server/task/Tasks") {
  static readonly layer = Layer.effect(
    Tasks,
    Effect.gen(function* () {
      const { get, hold, list, revisions, undecidedOf } = yield* makeTaskReading
      const { suggest } = yield* makeSuggesting
      const { wait, expire } = yield* makeWaiting
      const { approve, reject, rejectAll } = yield* makeDeciding
      const { isOver, rerunBy } = yield* makeRerunning
      return Tasks.of({
        suggest,
        get,
        hold,
        list,
        undecidedOf,
        revisions,
        wait,
        expire,
        approve,
        reject,
        rejectAll,
        rerunBy,
        isOver
      })
    })
  )
}
