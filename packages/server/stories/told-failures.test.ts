/**
 * What failed is told in the messages, the export and the log, also where no turn of it had begun.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { runLimits } from "../src/limits.ts"
import { answered, chat, contextOf, keyed, newAssistant } from "../testing/chat-words.ts"
import { firstOf, logOf, quietLog, turnsOf } from "../testing/context-words.ts"
import { messagesOf } from "../testing/conversation-words.ts"
import { defineWorkflow, loud, newestRun } from "../testing/define-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, startServer, type Story } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"

/** More characters than any prompt may have. */
const endless =
  "{% assign text = '0123456789' %}{% for n in (1..16) %}{% assign text = text | append: text %}{% endfor %}{{ text }}"

/** The last failure in a log says what its run says. */
const expectFailure = Effect.fnUntraced(function* (
  story: Story,
  conversationId: string,
  reason: string | undefined
) {
  const [run] = (yield* story.get("/runs?status=failed")).items
  const failures = (yield* quietLog(story, contextOf(conversationId))).filter(
    ({ type }) => type === "AgentTurnFailedEvent"
  )
  expect([failures.at(-1)?.error, failures.at(-1)?.reason]).toEqual([run.errorMessage, reason])
})

/** Who said what in a conversation, and how many calls were made for it; its export says the same. */
const toldIn = Effect.fnUntraced(function* (story: Story, id: string) {
  const { items } = yield* messagesOf(story, { id })
  expect((yield* story.get(`/conversations/${id}/export`)).messages).toEqual(items)
  return items.map(({ content, role, toolCalls }) => [role, content, toolCalls.length])
})

describe("A run whose model cannot be asked any more", () => {
  it.live("is told as one that failed, before its first turn, too, and what is said next has a turn", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const env = { OPENAI_API_KEY: "a-key-that-is-gone-soon-0123456789" }
      const [projectId, agent] = yield* Effect.scoped(
        Effect.gen(function* () {
          const doors = yield* startServer(access).pipe(
            Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
          )
          const story = yield* newProject(doors, access)
          const made: Json = yield* newAssistant(story, { provider: "openai", name: "gpt-4o" })
          return [story.projectId, made] as const
        })
      )
      yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const body = { agentId: agent.id, message: "Hello" }
          const failed = yield* answered(story, body, keyed("k"))
          expect(failed.status).toBe("failed")
          const { conversationId, response: trouble } = failed
          expect(trouble).toMatch(/\S/)
          yield* answered(story, { conversationId, message: "Still there?" })
          expect(yield* toldIn(story, conversationId)).toEqual([
            ["user", "Hello", 0],
            ["assistant", trouble, 0],
            ["user", "Still there?", 0],
            ["assistant", trouble, 0]
          ])
          yield* expectFailure(story, conversationId, "model")
          const again = yield* answered(story, body, keyed("k"))
          expect([again.status, again.response]).toEqual([failed.status, failed.response])
          expect(turnsOf(yield* logOf(story, contextOf(conversationId)))).toEqual([
            ["AgentTurnStartedEvent", 1],
            ["AgentTurnFailedEvent", 1],
            ["AgentTurnStartedEvent", 2],
            ["AgentTurnFailedEvent", 2]
          ])
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
      )
    }).pipe(Effect.scoped)
  )
})

layer(Interposed.layer, { excludeTestServices: true })((here) => {
  /** A conversation that is worked through in a draft and a check. */
  const worked = Effect.fnUntraced(function* (draft: string, check: string) {
    const story = yield* newInterposedStory
    const agent = yield* newAssistant(story, loud)
    const { id } = yield* story.post("/conversations", { agentId: agent.id })
    const steps = [
      { name: "draft", prompt: draft },
      { name: "check", prompt: check }
    ]
    const set = yield* defineWorkflow(story, contextOf(id), { flowType: "sequential", steps })
    expect(set.status).toBe(204)
    return { story, id }
  })

  describe("A step whose prompt cannot be made", () => {
    here.effect("is told as a failure where it is the first, and is behind whoever speaks next", () =>
      Effect.gen(function* () {
        const draft = `{% if input contains 'long' %}${endless}{% else %}draft {{ input }}{% endif %}`
        const { id, story } = yield* worked(draft, "check {{ steps.draft.output }}")
        const long = { conversationId: id, message: "long" }
        const failed = yield* answered(story, long, keyed("k"))
        expect(failed).toMatchObject({ status: "failed", response: expect.stringMatching(/\S/) })
        yield* expectFailure(story, id, "prompt")
        yield* answered(story, { conversationId: id, message: "short" })
        expect(yield* toldIn(story, id)).toEqual([
          ["user", "long", 0],
          ["assistant", failed.response, 0],
          ["user", "short", 0],
          ["assistant", "DRAFT SHORT", 0],
          ["assistant", "CHECK DRAFT SHORT", 0]
        ])
        const again = yield* answered(story, long, keyed("k"))
        expect([again.status, again.response]).toEqual([failed.status, failed.response])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    here.effect("is told as a failure where it is a later one, behind what the steps before it said", () =>
      Effect.gen(function* () {
        const check = `{% if input contains 'long' %}${endless}{% else %}check {{ steps.draft.output }}{% endif %}`
        const { id, story } = yield* worked("draft {{ input }}", check)
        const long = { conversationId: id, message: "long" }
        const failed = yield* answered(story, long, keyed("k"))
        expect(failed).toMatchObject({ status: "failed", response: expect.stringMatching(/\S/) })
        yield* expectFailure(story, id, "prompt")
        yield* answered(story, { conversationId: id, message: "short" })
        expect(yield* toldIn(story, id)).toEqual([
          ["user", "long", 0],
          ["assistant", "DRAFT LONG", 0],
          ["assistant", failed.response, 0],
          ["user", "short", 0],
          ["assistant", "DRAFT SHORT", 0],
          ["assistant", "CHECK DRAFT SHORT", 0]
        ])
        expect(yield* answered(story, long, keyed("k"))).toEqual(failed)
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )
  })

  describe("A run that nobody is left to work on", () => {
    /** Adds what it is told to add. */
    const adder = scripted([
      {
        when: "message contains 'Add' and step == 0",
        calls: [{ tool: "add_task", arguments: { title: "Milk" } }]
      },
      { say: "Fine." }
    ])

    /** Says something, lets its worker stand still at a place of a run, and the run be given up; `first` is a place that it passes before. */
    const givenUp = Effect.fnUntraced(function* (place: CrashPointName, first?: CrashPointName) {
      const { access, server } = yield* Interposed
      const story = yield* newInterposedStory
      const agent = yield* newAssistant(story, adder)
      const reached = yield* Deferred.make<void>()
      const dying = server.interpose(
        place,
        Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
      )
      yield* first === undefined ? dying : server.interpose(first, dying)
      const body = { agentId: agent.id, message: "Add milk" }
      const { conversationId } = (yield* chat(story, body, keyed("k"), "?wait=false")).body
      yield* Deferred.await(reached)
      yield* ask(
        access,
        `update kb.agent_runs set attempt = $2, attempts_before_step = $2 - 1, attempt_token = null, lease_expires_at = now()
         where project_id = $1 and status = 'running'`,
        [story.projectId, runLimits.maxAttemptsInAll]
      )
      yield* eventually(newestRun(story), ({ status }) => status === "failed")
      return { story, body, conversationId }
    })

    here.effect("is told as one that failed, with the calls that it made and the next answer did not", () =>
      Effect.gen(function* () {
        const { body, conversationId, story } = yield* givenUp("run.beforeModel", "run.afterStep")
        const failed = yield* answered(story, body, keyed("k"))
        expect(failed).toMatchObject({
          status: "failed",
          response: expect.stringMatching(/\S/),
          toolCalls: [{ tool: "add_task", result: { task_id: 1 } }]
        })
        yield* expectFailure(story, conversationId, undefined)
        const log = yield* logOf(story, contextOf(conversationId))
        expect(firstOf(log, "SessionEndedEvent").reason).toBe("crash")
        yield* answered(story, { conversationId, message: "Hello" })
        expect(yield* toldIn(story, conversationId)).toEqual([
          ["user", "Add milk", 0],
          ["assistant", failed.response, 1],
          ["user", "Hello", 0],
          ["assistant", "Fine.", 0]
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    here.effect("is told as one that failed where no turn of it had begun", () =>
      Effect.gen(function* () {
        const { body, conversationId, story } = yield* givenUp("run.afterClaim")
        const failed = yield* answered(story, body, keyed("k"))
        expect(failed).toMatchObject({ status: "failed", response: expect.stringMatching(/\S/) })
        yield* expectFailure(story, conversationId, undefined)
        yield* answered(story, { conversationId, message: "Hello" })
        expect(yield* toldIn(story, conversationId)).toEqual([
          ["user", "Add milk", 0],
          ["assistant", failed.response, 0],
          ["user", "Hello", 0],
          ["assistant", "Fine.", 0]
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )
  })
})
