/**
 * What whoever waits is told where what he waits for was begun and the database then says nothing, or breaks for a moment.
 */
import type { PgConnection } from "@effect/sql-pg"
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber, type Scope } from "effect"
import { chatLimits } from "../src/chat/limits.ts"
import { connect, type PostgresAccess } from "../src/database/postgres-access.ts"
import { openAiLimits } from "../src/http/openai/faults.ts"
import { runLimits } from "../src/limits.ts"
import { chatChunk, chatEnd, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import { outageLimits } from "../src/outbox/outages.ts"
import { answered, chat, keyed, newAssistant } from "../testing/chat-words.ts"
import { echo } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { interposedServer } from "../testing/interposed.ts"
import { asking as requesting, type Revision } from "../testing/mcp-clients.ts"
import { resultOf } from "../testing/mcp-extension-words.ts"
import { taskClient } from "../testing/mcp-task-clients.ts"
import { sendCompletion } from "../testing/openai-words.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { ask } from "../testing/owner-rows.ts"
import {
  type Answer,
  eventually,
  type Json,
  newProject,
  scripted,
  startServer,
  type Story
} from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newProviderStory } from "../testing/provider-story.ts"
import { asker, asking, askingModel } from "../testing/question-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { asTimePasses } from "../testing/shared-server.ts"
import { acquireSilentWay } from "../testing/silent-way.ts"
import { creating, pendingOf, suggesting, suggestingOnce } from "../testing/suggestion-words.ts"

/** Says one word and never comes to an end. */
const unending: FakeAnswer = {
  kind: "stream",
  chunks: [toEvent(chatChunk({ content: "One." }))],
  ending: "hang",
  rest: [chatEnd("stop").map(toEvent).join("")]
}

const triggering = (story: Story, agent: Json, headers = {}, query = "") =>
  story.send("POST", `/api/projects/${story.projectId}/agents/${agent.id}/trigger${query}`, {}, headers)

/** Keeps everybody from a table until the transaction ends. */
const holding = (hold: PgConnection.PgConnection, table: string) =>
  Effect.forEach(["begin", `lock table ${table} in access exclusive mode`], (statement) =>
    hold.query(statement)
  ).pipe(Effect.asVoid)

/** A server on real time, at which something happens at a named place. */
const newLiveStory = Effect.gen(function* () {
  const access = { ...(yield* freshDatabase), embedded: false }
  const { doors, interpose } = yield* interposedServer(access)
  const story = yield* newProject(doors, access)
  return { access, interpose, story, ...(yield* operatedDatabase(access)) }
})

/** What whoever waits is told, and how long he waited on the server's clock. */
const timed = Effect.fnUntraced(function* (request: Effect.Effect<Answer>) {
  const beganMs = yield* Clock.currentTimeMillis
  const answer = yield* request
  return { answer, tookMs: (yield* Clock.currentTimeMillis) - beganMs }
})

/** The same where a database says nothing at all behind their beginning, over new connections either. */
const toldInSilence = Effect.fnUntraced(function* (
  requests: (story: Story, agent: Json) => ReadonlyArray<Effect.Effect<Answer>>
) {
  const ways: Array<Effect.Success<ReturnType<typeof acquireSilentWay>>> = []
  const { agent, provider, story } = yield* newProviderStory([unending], {}, (access) =>
    Effect.map(acquireSilentWay(access), (way) => {
      ways.push(way)
      return { ...access, ...way.access }
    })
  )
  const { change } = yield* operatedDatabase(story.access)
  yield* Effect.addFinalizer(() =>
    Effect.andThen(
      change("connection limit -1"),
      Effect.forEach(ways, ({ cut }) => cut)
    )
  )
  const sent = yield* Effect.forEach(requests(story, agent), (request) => Effect.forkScoped(timed(request)))
  const asked = Effect.sync(() => provider.requests.length)
  yield* asTimePasses(50, asked, (count) => count === sent.length)
  yield* change("connection limit 0")
  for (const way of ways) yield* way.fallSilent
  const isAnswered = Effect.sync(() => sent.every((one) => one.pollUnsafe() !== undefined))
  yield* asTimePasses(2_000, isAnswered, (areAll) => areAll)
  return yield* Effect.forEach(sent, Fiber.join)
})

describe("Whoever waits for an answer of a database that says nothing at all", () => {
  it.effect("is told soon behind his time what is known", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const told = yield* toldInSilence((story, agent) => {
          const body = { model: agent.name, messages: [{ role: "user", content: "Hello" }] }
          return [
            triggering(story, agent),
            chat(story, { agentId: agent.id, message: "Hello" }),
            sendCompletion(story, body),
            sendCompletion(story, { ...body, stream: true })
          ]
        })
        expect(told.map(({ answer }) => [answer.status, lastOf(answer)])).toMatchObject([
          [202, { status: "queued" }],
          [202, { status: "working" }],
          [422, { error: { code: "unavailable" } }],
          [200, { error: { code: "unavailable" } }]
        ])
        const waitsMs = [
          runLimits.triggerWaitMs,
          chatLimits.waitMs,
          openAiLimits.waitMs,
          openAiLimits.streamWaitMs
        ]
        for (const [place, waitMs] of waitsMs.entries()) {
          // Who was reading when the database fell silent is told before the wait is over.
          expect(told[place]?.tookMs).toBeLessThan(waitMs + 2 * outageLimits.tryForMs)
        }
      })
    )
  )
})

describe("A short outage behind the beginning of what is waited for", () => {
  it.live("is lived through under a key, also where it meets what is kept of how a run ended", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { access, interpose, sendAway, story } = yield* newLiveStory
        const agent = yield* newAssistant(story, echo)
        const hold = yield* connect(access.ownerUrl)
        yield* interpose("run.afterClaim", Effect.orDie(holding(hold, "kb.idempotency_keys")))
        const triggered = yield* Effect.forkScoped(triggering(story, agent, keyed("k")))
        yield* whenWaiting(access, 1)
        yield* sendAway
        yield* hold.query("commit")
        const told = yield* Fiber.join(triggered)
        expect(told).toMatchObject({ status: 200, body: { status: "completed" } })
        expect((yield* triggering(story, agent, keyed("k"))).body).toEqual(told.body)
      })
    )
  )

  it.live("is lived through by whoever is asked something in return", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const story = yield* newProject(yield* startServer(access), access)
        const { sendAway } = yield* operatedDatabase(access)
        const agent = yield* asker(story, askingModel(asking("Which one?", ["This", "That"])))
        const said = [{ agentId: agent.id, message: "Hello" }, keyed("k")] as const
        const question = yield* answered(story, ...said)
        expect(question.response).toContain("Which one?")
        const hold = yield* connect(access.ownerUrl)
        yield* holding(hold, "kb.tasks")
        const again = yield* Effect.forkScoped(chat(story, ...said))
        yield* whenWaiting(access, 1)
        yield* sendAway
        yield* hold.query("commit")
        expect(yield* Fiber.join(again)).toMatchObject({ status: 200, body: question })
      })
    )
  )
})

/** What PostgreSQL says where somebody keeps what is asked for, and where it was made to break off. */
const passing = ["55P03", "57014"]

/** Whoever looks at a run or at a log from here on is told so at once. */
const breaking = (access: PostgresAccess, code: string) =>
  Effect.forEach(
    [
      `create or replace function kb.breaks() returns boolean language plpgsql as $$ begin raise exception 'broken off' using errcode = '${code}'; end $$`,
      "create policy broken_off on kb.agent_runs as restrictive for select using (kb.breaks())",
      "create policy broken_off on kb.context_events as restrictive for select using (kb.breaks())"
    ],
    (statement) => ask(access, statement)
  ).pipe(Effect.asVoid)

const mending = (access: PostgresAccess) =>
  Effect.forEach(["agent_runs", "context_events"], (table) =>
    ask(access, `drop policy broken_off on kb.${table}`)
  )

describe("Whoever waits for what was begun where the database breaks off what it is asked", () => {
  for (const code of passing)
    it.live(`is told what is known and not to begin it again: ${code}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { access, interpose, story } = yield* newLiveStory
          const agent = yield* newAssistant(story, scripted([{ say: "", fault: { kind: "hang" } }]))
          const body = { model: agent.name, messages: [{ role: "user", content: "Hello" }] }
          const requests = [
            triggering(story, agent),
            chat(story, { agentId: agent.id, message: "Hello" }),
            sendCompletion(story, body),
            sendCompletion(story, { ...body, stream: true }),
            Effect.map(
              resultOf(story, "tools/call", { name: "trigger_agent", arguments: { agent: agent.name } }, {}),
              ({ structuredContent }) => ({ status: 200, body: structuredContent, headers: new Headers() })
            )
          ]
          const sent = yield* Effect.forEach(requests, (request) => Effect.forkScoped(request))
          const atWork = ask(access, "select 1 from kb.agent_runs where status = 'running'")
          yield* eventually(atWork, ({ length }) => length === requests.length)
          yield* breaking(access, code)
          const told = yield* Effect.forEach(sent, Fiber.join)
          yield* mending(access)
          expect(told.map((answer) => [answer.status, lastOf(answer)])).toMatchObject([
            [202, { status: "queued" }],
            [202, { status: "working" }],
            [422, { error: { code: "unavailable" } }],
            [200, { error: { code: "unavailable" } }],
            [200, { status: "queued" }]
          ])
          yield* interpose("tool.afterCommit", breaking(access, code))
          const task = yield* resultOf(story, "tools/call", {
            name: "trigger_agent",
            arguments: { agent: agent.name }
          })
          yield* mending(access)
          expect(task).toMatchObject({ status: "working", taskId: expect.any(String) })
          expect((yield* story.get("/runs")).items).toHaveLength(requests.length + 1)
        })
      )
    )
})

/** How a client of either revision begins a run as a task. */
const tasksBegun: ReadonlyArray<
  readonly [Revision, (story: Story, call: Json) => Effect.Effect<Effect.Effect<Json>, never, Scope.Scope>]
> = [
  ["2026-07-28", (story, call) => Effect.succeed(resultOf(story, "tools/call", call))],
  [
    "2025-11-25",
    (story, call) =>
      Effect.map(
        taskClient(story, "2025-11-25", () => ({ action: "cancel" })),
        (client) => Effect.map(requesting(client, "tools/call", { ...call, task: {} }), ({ task }) => task)
      )
  ]
]

describe("Whoever does not wait, or waits for nothing more", () => {
  it.live("is told at once that what he said is kept", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, interpose, story } = yield* newLiveStory
        const agent = yield* newAssistant(story, echo)
        const said = { agentId: agent.id, message: "Hello" }
        yield* interpose("chat.afterCommit", become("connection limit 0"))
        const beganMs = performance.now()
        const told = yield* chat(story, said, {}, "?wait=false")
        expect(performance.now() - beganMs).toBeLessThan(outageLimits.tryForMs / 2)
        expect(told).toMatchObject({ status: 202, body: { status: "working", response: "" } })
        expectProblem(yield* chat(story, said, {}, "?wait=false"), 503)
        yield* become("connection limit -1")
      })
    )
  )

  for (const [revision, asTask] of tasksBegun)
    it.live(`is told at once of the task that a call of ${revision} began`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { become, change, interpose, story } = yield* newLiveStory
          const agent = yield* newAssistant(story, echo)
          const begin = yield* asTask(story, { name: "trigger_agent", arguments: { agent: agent.name } })
          yield* interpose("tool.afterCommit", become("connection limit 0"))
          const told = yield* begin
          yield* change("connection limit -1")
          expect(told).toMatchObject({ status: "working", taskId: expect.any(String) })
          const { body } = yield* eventually(story.ask("GET", "/runs"), ({ status }) => status === 200)
          expect(body.items).toMatchObject([{ id: told.taskId }])
        })
      )
    )

  it.live("is told what came of decisions, for nothing is asked behind the last", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { become, interpose, story } = yield* newLiveStory
        const agent = yield* suggesting(story)
        yield* suggestingOnce(story, agent, creating("ada"))
        const [task] = yield* pendingOf(story)
        yield* interpose("task.afterCommit", become("connection limit 0"))
        const decided = { decision: "approve", tasks: [{ taskId: task.id }] }
        const told = yield* story.ask("POST", "/tasks/decisions", decided)
        yield* become("connection limit -1")
        expect(told).toMatchObject({ status: 200, body: { items: [{ task: { status: "completed" } }] } })
      })
    )
  )
})

/** What an answer tells, or the last event of a stream. */
const lastOf = (answer: Answer): Json =>
  typeof answer.body === "string"
    ? JSON.parse(
        answer.body
          .split("\n\n")
          .findLast((block) => block.startsWith("data: "))
          ?.slice("data: ".length) ?? "null"
      )
    : answer.body
