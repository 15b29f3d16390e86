/**
 * The people of a simulation: they write, throw in, deliver, review, talk and cancel.
 *
 * They ask servers, as requests through the doors do, and note what they were
 * told. An answer that never came is no answer: the deed may be done or not. What
 * was acknowledged must be true for ever; the checkers ask for it at the end.
 */
import { type Actor, direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { Agent } from "@tropism/domain/agent"
import type { Digest } from "@tropism/domain/attachment"
import { ContextName } from "@tropism/domain/context-event"
import type {
  AgentId,
  ObjectId,
  ProjectId,
  RelationshipId,
  RunId,
  TaskId,
  UserId,
  WebhookId
} from "@tropism/domain/ids"
import { isSuggestion, isTodo, type Task } from "@tropism/domain/task"
import { Cause, Effect, Exit } from "effect"
import { Contexts } from "../src/contexts/contexts.ts"
import { CrashPoint } from "../src/crash-point.ts"
import { Database, type ProjectTransaction } from "../src/database/database.ts"
import { Deliveries } from "../src/reactions/webhooks.ts"
import { Triggers } from "../src/reactions/manual-triggers.ts"
import { Gateway } from "../src/graph/gateway.ts"
import type { Applied } from "../src/graph/recording.ts"
import { RunCancellation } from "../src/runs/cancellation.ts"
import { Runs } from "../src/runs/run-store.ts"
import type { Edit } from "../src/review/decisions.ts"
import { Tasks } from "../src/review/tasks.ts"
import { moods } from "./agents.ts"
import type { Chance } from "./chance.ts"
import type { WholeServer } from "./server-life.ts"

/** What somebody was told. */
export type Told<A> =
  | { readonly type: "done"; readonly value: A }
  | { readonly type: "refused"; readonly why: string }
  | { readonly type: "unknown" }

/** Asks some server that is up. */
export type Request = <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Told<A>>

/** Asks some server that is up, in one transaction of the project. */
export type Ask = <A, E>(
  effect: Effect.Effect<A, E, WholeServer | ProjectTransaction>,
  afterCommit?: Effect.Effect<void>
) => Effect.Effect<Told<A>>

/** What people were told was done. */
export interface Acknowledged {
  readonly changes: Array<{ readonly change: Change; readonly applied: Applied }>
  readonly approved: Array<TaskId>
  /** Those of them that were approved with another text than was suggested. */
  readonly edited: Array<TaskId>
  readonly rejected: Array<TaskId>
  readonly todos: Array<{ readonly owner: string; readonly number: number }>
  readonly said: Array<{ readonly context: string; readonly content: string }>
  /** Files that somebody sent, and whether they were told that these are kept. */
  readonly filed: Array<{ readonly digest: Digest; readonly by: string; readonly isSure: boolean }>
  readonly shown: Array<{ readonly context: string; readonly digest: Digest }>
  readonly forked: Array<{ readonly context: string; readonly from: string; readonly at: number }>
  /** Ids of comparisons. */
  readonly compared: Array<string>
  /** Messages of chats, each as often as somebody was told of it. */
  readonly chatted: Array<{
    readonly key: string
    readonly content: string
    readonly context: string
    readonly number: number
  }>
  /** Calls of a client tool, each as often as an answer was acknowledged. */
  readonly answeredCalls: Array<{ readonly callId: string; readonly client: string }>
  /** What requests under keys were answered, each as often as somebody was told. */
  readonly keyed: Array<{ readonly key: string; readonly answer: string }>
  /** Answers that were told whole, and the message that each was told for. */
  readonly answered: Array<{ readonly context: string; readonly number: number; readonly response: string }>
  readonly delivered: Array<{ readonly id: string; readonly runId: RunId }>
  /** Ids of the events that a subscriber was posted, each as often as it came. */
  readonly posted: Array<string>
  /** Agents and objects that a person named in a batch, acknowledged or not: what waits for its run does not say who asked. */
  readonly named: Array<{ readonly agentId: AgentId; readonly objectId: string }>
  /** What agents had written by themselves when a right to write was taken from them for good. */
  readonly restrained: Array<{ readonly agentId: AgentId; readonly written: ReadonlyArray<string> }>
  /** Promotions that somebody took back, with the calls that had been made by them. */
  readonly distrusted: Array<{ readonly promotionId: string; readonly calls: ReadonlyArray<string> }>
  /** What agents had written when a kill switch was on, and before it was turned off. */
  readonly halted: Array<{ readonly before: ReadonlyArray<string>; readonly after: ReadonlyArray<string> }>
}

export const nothingAcknowledged = (): Acknowledged => ({
  changes: [],
  approved: [],
  edited: [],
  rejected: [],
  todos: [],
  said: [],
  filed: [],
  shown: [],
  forked: [],
  compared: [],
  chatted: [],
  answeredCalls: [],
  keyed: [],
  answered: [],
  delivered: [],
  posted: [],
  named: [],
  restrained: [],
  distrusted: [],
  halted: []
})

export interface Person {
  readonly chance: Chance
  readonly request: Request
  readonly ask: Ask
  readonly acknowledged: Acknowledged
}

/** Makes a `Request` out of a way to reach a server. */
export const requestOf =
  (
    askServer: <A, E>(effect: Effect.Effect<A, E, WholeServer>) => Effect.Effect<Exit.Exit<A, E> | "lost">
  ): Request =>
  (effect) =>
    Effect.map(askServer(effect), (exit): Told<Effect.Success<typeof effect>> => {
      if (exit === "lost" || (Exit.isFailure(exit) && !isRefusal(exit.cause))) return { type: "unknown" }
      return Exit.isSuccess(exit)
        ? { type: "done", value: exit.value }
        : { type: "refused", why: String(Cause.squash(exit.cause)) }
    })

export const askInProject =
  (projectId: ProjectId, request: Request): Ask =>
  (effect, afterCommit = Effect.void) =>
    request(
      Effect.gen(function* () {
        const database = yield* Database
        return yield* Effect.tap(database.inProject(projectId, effect), () => afterCommit)
      })
    )

/** A refusal is an error that the server means; a broken connection is none. */
const isRefusal = (cause: Cause.Cause<unknown>): boolean => cause.reasons.some(Cause.isFailReason)

const user: Actor = { actorType: "user", actorId: "ada" }

/** Asks for a change of the graph, and notes it where it was told as done. */
export const makeChange = Effect.fnUntraced(function* (
  { ask, acknowledged }: Pick<Person, "ask" | "acknowledged">,
  change: Change,
  afterCommit?: Effect.Effect<void>
) {
  const told = yield* ask(
    Effect.flatMap(Gateway, (gateway) => gateway.apply(change, { actor: user, cause: direct })),
    afterCommit
  )
  if (told.type === "done") acknowledged.changes.push({ change, applied: told.value })
  return told
})

/** Writes objects and relationships, one change after another. */
export const write = Effect.fnUntraced(function* (person: Person) {
  const { chance } = person
  const objects: Array<ObjectId> = []
  const relationships: Array<RelationshipId> = []
  for (let n = chance.between(3, 6); n > 0; n--) {
    const change = drawChange(chance, objects, relationships, n)
    const told = yield* makeChange(person, change, CrashPoint.hit("graph.afterCommit"))
    if (told.type === "done") {
      const { entity } = told.value
      if (change.type === "create" && entity.kind === "object") objects.push(entity.object.id)
      if (entity.kind === "relationship") relationships.push(entity.relationship.id)
    }
    if (!chance.oneIn(3)) yield* Effect.sleep(chance.between(1, 600))
  }
})

const drawChange = (
  chance: Chance,
  objects: ReadonlyArray<ObjectId>,
  relationships: ReadonlyArray<RelationshipId>,
  n: number
): Change => {
  const mood = chance.pick(moods)
  const doubt = chance.oneIn(8) ? { untrusted: ["mood"] } : {}
  const [first, ...rest] = objects
  const kind = first === undefined ? 0 : chance.below(10)
  if (first === undefined || kind < 4) {
    const key = chance.oneIn(2) ? `key-${chance.below(4)}` : null
    return {
      type: "create",
      objectType: chance.oneIn(4) ? "Person" : "Note",
      key,
      data: { mood, n, tags: ["a", { b: null }] },
      ...doubt
    }
  }
  const objectId = chance.pick([first, ...rest])
  if (kind < 7) {
    const expected = chance.oneIn(4) ? { expectedVersion: chance.between(1, 3) } : {}
    return chance.oneIn(6)
      ? { type: "update", objectId, data: {}, ...expected }
      : { type: "update", objectId, data: { mood, n }, ...doubt, ...expected }
  }
  if (kind === 7) return { type: "delete", objectId }
  const [known] = relationships
  if (kind === 8 && known !== undefined)
    return chance.oneIn(2)
      ? { type: "updateRelationship", relationshipId: known, data: { mood, n }, ...doubt }
      : { type: "deleteRelationship", relationshipId: known }
  const toId = chance.pick([first, ...rest])
  return { type: "createRelationship", relationship: { fromId: objectId, toId, type: "knows" }, data: { n } }
}

/** Throws something in that starts a game of agents. */
export const throwIn = Effect.fnUntraced(function* (person: Person, objectType: string) {
  yield* Effect.sleep(person.chance.between(1, 500))
  yield* makeChange(person, { type: "create", objectType, key: null, data: {} })
})

/** Delivers what others may be delivering too, and again when there was no answer. */
export const deliver = Effect.fnUntraced(function* (
  webhookId: WebhookId,
  { chance, ask, acknowledged }: Person
) {
  for (let n = chance.between(1, 3); n > 0; n--) {
    const id = `delivery ${chance.below(3)}`
    const told = yield* ask(
      Effect.flatMap(Deliveries, (deliveries) => deliveries.accept(webhookId, id, { n }))
    )
    if (told.type === "done") acknowledged.delivered.push({ id, runId: told.value.runId })
    if (chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 500))
  }
})

/** Looks at what waits and decides, sometimes on something that it did not see, and sometimes otherwise than was suggested. */
export const review = Effect.fnUntraced(function* (name: string, { chance, ask, acknowledged }: Person) {
  const by = name as UserId
  const decider = { userId: by, mayTakeBack: true }
  for (let round = chance.between(2, 4); round > 0; round--) {
    yield* Effect.sleep(chance.between(50, 1_100))
    const seen = yield* ask(
      Effect.flatMap(Tasks, (tasks) => tasks.list({ status: "pending" }, by, undefined, 50))
    )
    if (seen.type !== "done") continue
    for (const task of seen.value.filter((each) => !isTodo(each))) {
      if (chance.oneIn(4)) yield* writeOver({ ask, acknowledged }, task)
      const choice = chance.below(10)
      if (choice < 6) {
        const digest = chance.oneIn(10) ? "0".repeat(64) : task.digest
        const edit = chance.oneIn(5) ? editOf(task) : null
        const told = yield* ask(
          Effect.flatMap(Tasks, (tasks) => tasks.approve(task.id, decider, digest, edit)),
          CrashPoint.hit("task.afterCommit")
        )
        if (told.type === "done") acknowledged.approved.push(task.id)
        if (told.type === "done" && edit !== null) acknowledged.edited.push(task.id)
      } else if (choice < 9) {
        const told = yield* ask(Effect.flatMap(Tasks, (tasks) => tasks.reject(task.id, decider, "Not now")))
        if (told.type === "done") acknowledged.rejected.push(task.id)
      } else if (isSuggestion(task) && chance.oneIn(6)) {
        const told = yield* ask(
          Effect.flatMap(Tasks, (tasks) => tasks.rejectAll(task.agentId, by, "None of it")),
          CrashPoint.hit("task.afterCommit")
        )
        if (told.type === "done") acknowledged.rejected.push(...(told.value ?? []))
      }
    }
  }
})

/** Writes what a suggestion would write, otherwise, before anybody decides: whoever approves it then must be told. */
const writeOver = Effect.fnUntraced(function* (person: Pick<Person, "ask" | "acknowledged">, task: Task) {
  const wanted = isSuggestion(task) ? task.payload.suggestedChanges : undefined
  if (wanted?.type !== "update") return
  const [name = "mood"] = Object.keys(wanted.data)
  yield* makeChange(person, {
    type: "update",
    objectId: wanted.objectId,
    data: { [name]: `before ${task.id}` }
  })
})

/** The property by which a person marks what he approves otherwise than it was suggested. */
export const editMark = "checkedAs"

/** What was suggested, marked by the person; null where there is nothing to mark. */
const editOf = (task: Task): Edit | null => {
  if (!isSuggestion(task)) return null
  const change = task.payload.suggestedChanges
  return "data" in change ? { data: { ...change.data, [editMark]: task.id }, baseVersion: null } : null
}

/** Says a few things to an agent in one context, often before it has answered. */
export const talk = Effect.fnUntraced(function* (agent: Agent, { chance, ask, acknowledged }: Person) {
  const name = ContextName.make("talk")
  const made = yield* ask(Effect.flatMap(Contexts, (contexts) => contexts.create(name, agent.id)))
  if (made.type !== "done") return
  for (let n = chance.between(2, 4); n > 0; n--) {
    const content = chance.pick([`hello ${n}`, `look ${n}`])
    const told = yield* ask(
      Effect.gen(function* () {
        const triggers = yield* Triggers
        const event = { type: "UserMessageEvent" as const, content, triggersAgentTurn: true }
        yield* triggers.byEvent(made.value, event, "ada" as UserId)
      })
    )
    if (told.type === "done") acknowledged.said.push({ context: name, content })
    if (!chance.oneIn(2)) yield* Effect.sleep(chance.between(1, 500))
  }
})

/** Cancels a run or two, whatever they are at. */
export const cancel = Effect.fnUntraced(function* ({ chance, ask }: Person) {
  for (let n = chance.between(1, 2); n > 0; n--) {
    yield* Effect.sleep(chance.between(1, 1_200))
    yield* ask(
      Effect.gen(function* () {
        const runs = yield* Runs
        const [newest] = yield* runs.list({}, undefined, 1)
        if (newest !== undefined) yield* (yield* RunCancellation).cancel(newest, { by: "ada" as UserId })
      })
    )
  }
})
