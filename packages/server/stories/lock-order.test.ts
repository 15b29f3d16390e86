/**
 * Whoever ends a run, speaks in its context, retries or spawns takes rows in one order, so that none of them waits for another in a circle.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect, errorCode } from "../src/database/postgres-access.ts"
import { runLimits } from "../src/limits.ts"
import {
  contentsOf,
  echo,
  failingOnce,
  logWith,
  newContext,
  quietLog,
  say
} from "../testing/context-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { begin, boss, isEnded, runWhen, saysAfter, spawning, worker } from "../testing/sub-agent-words.ts"

/** A project, and somebody who holds an agent's row as whoever speaks or retries does. */
const newScene = Effect.gen(function* () {
  const { access, server } = yield* Interposed
  const story = yield* newInterposedStory
  const holder = yield* Effect.orDie(connect(access.ownerUrl))
  return {
    access,
    story,
    interpose: server.interpose,
    hold: (agent: Json) =>
      Effect.orDie(
        Effect.andThen(
          holder.query("begin"),
          holder.query(`select from kb.agents where id = '${agent.id}' for no key update`)
        )
      ),
    /** Takes rows that come behind the agent at once, when somebody waits for the agent. */
    takeNext: (rows: string) =>
      Effect.andThen(
        whenWaiting(access, 1),
        Effect.orDie(holder.query(`select from ${rows} for no key update nowait`))
      ),
    letGo: Effect.orDie(holder.query("commit"))
  }
})

const logsOf = ({ projectId }: Story) => `kb.contexts where project_id = '${projectId}'`

/** The code with which PostgreSQL refuses another run in the context of a project's run; it does not wait until that one is through. */
const secondRunIn = Effect.fnUntraced(function* ({ access, projectId }: Story) {
  const speaker = yield* Effect.orDie(connect(access.ownerUrl))
  yield* Effect.orDie(speaker.query("set lock_timeout = '50ms'"))
  return yield* speaker
    .query(
      `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, depth)
       select gen_random_uuid(), project_id, agent_id, agent_version, 'queued', trigger, context_name, 0
       from kb.agent_runs where project_id = '${projectId}'`
    )
    .pipe(
      Effect.as(undefined),
      Effect.catch((error) => Effect.succeed(errorCode(error)))
    )
})

/** The runs of a project have ended, each as it is said, oldest first. */
const runsEnded = (story: Story, ...statuses: ReadonlyArray<string>) =>
  eventually(
    story.get("/runs"),
    ({ items }) => items.length === statuses.length && items.every(isEnded)
  ).pipe(
    Effect.tap(({ items }) =>
      Effect.sync(() => expect(items.toReversed().map(({ status }: Json) => status)).toEqual(statuses))
    )
  )

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("The end of a run takes its agent before its log", () => {
    it.effect("where it fails", () =>
      Effect.gen(function* () {
        const { hold, interpose, letGo, story, takeNext } = yield* newScene
        const agent = yield* newContext(story, "talk", failingOnce)
        yield* interpose("run.beforeModel", hold(agent))
        yield* say(story, "talk", "One")
        yield* takeNext(logsOf(story))
        yield* letGo
        yield* runsEnded(story, "failed")
      })
    )

    it.effect("where it makes good what failed before", () =>
      Effect.gen(function* () {
        const { access, hold, interpose, letGo, story, takeNext } = yield* newScene
        const agent = yield* newContext(story, "talk", failingOnce)
        const failures = ask(access, "select consecutive_failures from kb.agents where id = $1", [agent.id])
        yield* say(story, "talk", "One")
        yield* runsEnded(story, "failed")
        expect(yield* failures).toEqual([[1]])
        yield* interpose("run.beforeComplete", hold(agent))
        yield* say(story, "talk", "Two")
        yield* takeNext(logsOf(story))
        yield* letGo
        yield* runsEnded(story, "failed", "completed")
        expect(contentsOf(yield* quietLog(story, "talk"), "AssistantMessageEvent")).toEqual(["Answer 2: Two"])
        expect(yield* failures).toEqual([[0]])
      })
    )

    it.effect("where it is given up", () =>
      Effect.gen(function* () {
        const { access, hold, interpose, letGo, story, takeNext } = yield* newScene
        const agent = yield* newContext(story, "talk", echo)
        yield* interpose("run.beforeModel", Effect.never)
        yield* say(story, "talk", "One")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        yield* hold(agent)
        yield* ask(
          access,
          `update kb.agent_runs set attempt = $2, attempt_token = null, lease_expires_at = now()
           where project_id = $1 and status = 'running'`,
          [story.projectId, runLimits.maxAttemptsInAll]
        )
        yield* takeNext(logsOf(story))
        // Nor has it changed meanwhile: whoever speaks finds it at work without waiting for it.
        expect(yield* secondRunIn(story)).toBe("23505")
        yield* letGo
        yield* runsEnded(story, "failed")
      })
    )
  })

  describe("Whoever spawns a run", () => {
    it.effect("takes its agent before the chain, as whoever retries does", () =>
      Effect.gen(function* () {
        const { hold, interpose, letGo, story, takeNext } = yield* newScene
        const helper = yield* story.post("/agents", worker("helper", saysAfter(0)))
        const run = yield* Effect.flatMap(boss(story, [spawning("helper")]), (agent) =>
          Effect.andThen(interpose("run.afterStep", hold(helper)), begin(story, agent))
        )
        yield* takeNext(`kb.budgets where project_id = '${story.projectId}' and scope = 'chain'`)
        yield* letGo
        expect(yield* runWhen(story, run, isEnded)).toMatchObject({ status: "completed" })
      })
    )
  })
})
