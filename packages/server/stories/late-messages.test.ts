/**
 * A message that is kept in the moment in which the run at work in its context comes to its end.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { CrashPointName } from "../src/crash-point.ts"
import { connect } from "../src/database/postgres-access.ts"
import { runLimits } from "../src/limits.ts"
import { answered, chat, newAssistant } from "../testing/chat-words.ts"
import {
  contentsOf,
  echo,
  failingOnce,
  logOf,
  logWith,
  newContext,
  noteTaker,
  quietLog,
  say,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Answer, eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { interposedInLine } from "../testing/waiting-in-line.ts"

/** A project, in whose contexts nobody writes while somebody else holds their logs. */
const newScene = Effect.gen(function* () {
  const { access, server } = yield* Interposed
  const story = yield* newInterposedStory
  const holder = yield* connect(access.ownerUrl)
  const hold = Effect.andThen(
    holder.query("begin"),
    holder.query(`select from kb.contexts where project_id = '${story.projectId}' for no key update`)
  )
  const said = Deferred.makeUnsafe<Answer>()
  return {
    access,
    story,
    interpose: server.interpose,
    /** Holds the logs from where a run passes a place next, and then lets an act happen before it goes on. */
    holdLogsAt: (place: CrashPointName, act: Effect.Effect<void> = Effect.void) =>
      server.interpose(place, Effect.andThen(Effect.orDie(hold), act)),
    letGo: Effect.orDie(holder.query("commit")),
    /** Says something, which is kept when the log is let go, and answers when so many wait for it. */
    speakAmong: (content: string, waiting: number) =>
      Effect.andThen(
        Effect.forkDetach(
          Effect.flatMap(say(story, "talk", content), (answer) => Deferred.succeed(said, answer))
        ),
        whenWaiting(access, waiting)
      ),
    /** What the door answered to that. */
    said: Deferred.await(said),
    whenWaiting: (count: number) => whenWaiting(access, count)
  }
})

/** A context whose model, where it fails, is not asked again. */
const talkWith = Effect.fnUntraced(function* (
  story: Story,
  model: Json,
  overrides?: Record<string, unknown>
) {
  const agent = yield* newContext(story, "talk", model, overrides)
  const retries = { type: "SetRetryConfigEvent", maxRetries: 0, baseMs: 1, maxMs: 1 }
  expect((yield* story.ask("POST", "/contexts/talk/events", retries)).status).toBe(204)
  return agent
})

/** Fails at the second message, and answers whatever else is said. */
const failingSecond = scripted([
  { when: "turn == 2", say: "", fault: { kind: "error", message: "Out of order" } },
  { say: "Answer {{ turn }}: {{ message }}" }
])

/** The runs of the project, oldest first. */
const statusesOf = (story: Story) =>
  Effect.map(story.get("/runs"), ({ items }) => items.toReversed().map(({ status }: Json) => status))

/** As many workers have died over the run at work as may; answers what ends its lease. */
const spend = Effect.fnUntraced(function* ({ access, story }: Effect.Success<typeof newScene>) {
  const change = (columns: string) =>
    ask(access, `update kb.agent_runs set ${columns} where project_id = $1 and status = 'running'`, [
      story.projectId
    ])
  yield* change(`attempt = ${runLimits.maxAttemptsInAll}, attempt_token = null`)
  return change("lease_expires_at = now()")
})

/** Deletes a conversation in the moment in which its run fails and something was said late, and answers what became of the runs. */
const deletedWhileFailing = Effect.gen(function* () {
  const { holdLogsAt, letGo, story, whenWaiting } = yield* newScene
  const agent = yield* newAssistant(story, failingSecond)
  const { conversationId } = yield* answered(story, { agentId: agent.id, message: "Hello" })
  const [{ contextName }] = (yield* story.get("/runs")).items
  const retries = { type: "SetRetryConfigEvent", maxRetries: 0, baseMs: 1, maxMs: 1 }
  expect((yield* story.ask("POST", `/contexts/${contextName}/events`, retries)).status).toBe(204)
  const saying = (message: string) => chat(story, { conversationId, message }, {}, "?wait=false")
  const late = yield* Deferred.make<Answer>()
  yield* holdLogsAt(
    "run.beforeModel",
    Effect.andThen(
      Effect.forkDetach(Effect.flatMap(saying("Two"), (answer) => Deferred.succeed(late, answer))),
      whenWaiting(1)
    )
  )
  expect((yield* saying("One")).status).toBe(202)
  yield* whenWaiting(2)
  const deleted = yield* Effect.forkChild(story.ask("DELETE", `/conversations/${conversationId}`))
  yield* whenWaiting(3)
  yield* letGo
  expect((yield* Deferred.await(late)).status).toBe(202)
  expect((yield* Fiber.join(deleted)).status).toBe(204)
  return yield* statusesOf(story)
})

layer(interposedInLine, { excludeTestServices: true })((it) => {
  describe("A message in the moment in which a run ends", () => {
    it.effect("has a run of its own where that one fails", () =>
      Effect.gen(function* () {
        const { holdLogsAt, letGo, said, speakAmong, story, whenWaiting } = yield* newScene
        yield* talkWith(story, failingOnce)
        // It waits to be kept before the run finds that it fails, and so it is kept before the failure is.
        yield* holdLogsAt("run.beforeModel", speakAmong("Two", 1))
        yield* say(story, "talk", "One")
        yield* whenWaiting(2)
        yield* letGo
        expect(yield* said).toMatchObject({ status: 204 })
        yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        const log = yield* quietLog(story, "talk")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnFailedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnCompletedEvent", 2]
        ])
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 2: Two"])
        expect(yield* statusesOf(story)).toEqual(["failed", "completed"])
      })
    )

    it.effect("has none where the agent was disabled by that failure, which is told as its own, too", () =>
      Effect.gen(function* () {
        const { holdLogsAt, letGo, said, speakAmong, story, whenWaiting } = yield* newScene
        const agent = yield* talkWith(story, failingOnce, { disableAfterFailures: 1 })
        yield* holdLogsAt("run.beforeModel", speakAmong("Two", 1))
        yield* say(story, "talk", "One")
        yield* whenWaiting(2)
        yield* letGo
        expect(yield* said).toMatchObject({ status: 204 })
        yield* logWith(story, "talk", "AgentTurnFailedEvent")
        expect((yield* story.get(`/agents/${agent.id}`)).enabled).toBe(false)
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "UserMessageEvent")).toEqual(["One", "Two"])
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnFailedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnFailedEvent", 2]
        ])
        expect(yield* statusesOf(story)).toEqual(["failed"])
      })
    )

    it.effect("has a run of its own where nobody is left to work on that one", () =>
      Effect.gen(function* () {
        const scene = yield* newScene
        const { interpose, story } = scene
        yield* talkWith(story, echo)
        const reached = yield* Deferred.make<void>()
        yield* interpose(
          "run.beforeModel",
          Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
        )
        yield* say(story, "talk", "One")
        // Who loses the run before he comes there leaves the place to the next.
        yield* Deferred.await(reached)
        const lapse = yield* spend(scene)
        expect((yield* say(story, "talk", "Two")).status).toBe(204)
        yield* lapse
        yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        const log = yield* quietLog(story, "talk")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnFailedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnCompletedEvent", 2]
        ])
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 2: Two"])
        expect(yield* statusesOf(story)).toEqual(["failed", "completed"])
      })
    )

    it.effect("has a run of its own where that one is given up between two of its turns", () =>
      Effect.gen(function* () {
        const scene = yield* newScene
        const { access, interpose, story } = scene
        yield* talkWith(story, echo)
        const stop = interpose("run.afterStep", Effect.never)
        yield* interpose("run.beforeComplete", Effect.andThen(say(story, "talk", "Two"), stop))
        yield* say(story, "talk", "One")
        yield* logWith(story, "talk", "AssistantMessageEvent")
        const lapse = yield* spend(scene)
        // Its worker had ended the turn before it died.
        yield* ask(
          access,
          `with log as (
             update kb.contexts set last_event_number = last_event_number + 1, open_turn_number = null
             where project_id = $1 returning project_id, name, last_event_number)
           insert into kb.context_events (project_id, context_name, number, type, payload, triggers_agent_turn, created_at)
           select project_id, name, last_event_number, 'AgentTurnCompletedEvent', '{"turnNumber": 1, "durationMs": 1}', false, now() from log`,
          [story.projectId]
        )
        yield* lapse
        const log = yield* logWith(story, "talk", "AgentTurnCompletedEvent", 2)
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 1: One", "Answer 2: Two"])
        expect(yield* statusesOf(story)).toEqual(["failed", "completed"])
      })
    )

    it.effect("lets that one go on where a limit has just stopped it", () =>
      Effect.gen(function* () {
        const { holdLogsAt, letGo, said, speakAmong, story, whenWaiting } = yield* newScene
        yield* talkWith(story, noteTaker, { maxSteps: 1 })
        yield* holdLogsAt("run.beforeComplete")
        yield* say(story, "talk", "Begin")
        // The run is about to rest when the message finds it at work; then it rests, and then the message is kept.
        yield* whenWaiting(1)
        yield* speakAmong("That is enough.", 2)
        yield* letGo
        expect(yield* said).toMatchObject({ status: 204 })
        yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "AssistantMessageEvent").at(-1)).toBe("You said: That is enough.")
        expect(contentsOf(log, "UserMessageEvent")).toEqual(["Begin", "That is enough."])
        expect(yield* statusesOf(story)).toEqual(["completed"])
      })
    )

    it.effect("lets that one go on where it was at its last request before a limit", () =>
      Effect.gen(function* () {
        const { interpose, story } = yield* newScene
        yield* talkWith(story, noteTaker, { maxSteps: 1 })
        const late = yield* Deferred.make<Answer>()
        const speak = Effect.flatMap(say(story, "talk", "That is enough."), (answer) =>
          Deferred.succeed(late, answer)
        )
        // The first request takes its one step; the one behind that is its last.
        yield* interpose("run.beforeModel", interpose("run.beforeModel", speak))
        yield* say(story, "talk", "Begin")
        expect(yield* Deferred.await(late)).toMatchObject({ status: 204 })
        const log = yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnInterruptedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnCompletedEvent", 2]
        ])
        expect(contentsOf(log, "AssistantMessageEvent").at(-1)).toBe("You said: That is enough.")
        expect(yield* statusesOf(story)).toEqual(["completed"])
      })
    )

    it.effect("is stopped with that one where a person cancels it, and read with the next", () =>
      Effect.gen(function* () {
        const { interpose, story } = yield* newScene
        yield* talkWith(story, echo)
        yield* interpose("run.beforeModel", Effect.never)
        yield* say(story, "talk", "One")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        expect((yield* say(story, "talk", "Two")).status).toBe(204)
        const [run] = (yield* story.get("/runs")).items
        yield* story.post(`/runs/${run.id}/cancel`)
        expect(typesOf(yield* logOf(story, "talk")).at(-1)).toBe("AgentTurnInterruptedEvent")
        expect(yield* statusesOf(story)).toEqual(["cancelled"])
        yield* say(story, "talk", "Three")
        const log = yield* eventually(logOf(story, "talk"), (events) =>
          typesOf(events).includes("AgentTurnCompletedEvent")
        )
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 3: Three"])
      })
    )
  })

  describe("A conversation that is deleted in the moment in which its run fails", () => {
    it.effect("has no other run behind that one, for what was said late", () =>
      Effect.gen(function* () {
        // Whichever comes first: the failure, or the deletion, which cancels the run.
        let seen = yield* deletedWhileFailing
        for (let n = 0; n < 40 && !seen.includes("failed"); n++) seen = yield* deletedWhileFailing
        expect(seen).toEqual(["completed", "failed", "cancelled"])
      })
    )
  })
})
