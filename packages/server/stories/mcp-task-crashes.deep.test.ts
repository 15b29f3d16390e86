/**
 * Answers to a task of MCP have one effect: whoever dies meanwhile, and however often and at how many servers they are given.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { answering, filled, taskOf, taskWhen } from "../testing/mcp-extension-words.ts"
import { prepareMortal, startMortal } from "../testing/mortal-servers.ts"
import { holding } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, type Story, storyIn } from "../testing/platform.ts"
import { asked, asking, ended, logOfRun, questionsOf } from "../testing/question-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { asTimePasses } from "../testing/shared-server.ts"
import { callsOf, watcher } from "../testing/story-words.ts"
import { creating, suggested } from "../testing/suggestion-words.ts"
import { bothDoors, TwoServers } from "../testing/two-servers.ts"

const keyOf = (task: Json): string => Object.keys(task.inputRequests)[0] ?? ""

/** An agent that has used its one step, and says so; it is done when it may go on. */
const stopped = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      name: "halting",
      triggerType: "manual",
      reactionConfig: null,
      maxSteps: 1,
      tools: ["graph.*"],
      model: scripted([
        { when: "tools.size == 0", say: "So far." },
        { when: "turn == 1", calls: [{ tool: "search_objects", arguments: { type: "Thing" } }] },
        { say: "Done." }
      ])
    })
  )
  const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
  // Whichever server takes it: one that waits hears of the other's work only as the clock goes on.
  return yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "paused")
})

const typesIn = (log: ReadonlyArray<Json>, type: string) => log.filter((event) => event.type === type)

describe("A server that dies around an answer to a task", () => {
  it.live("before it is kept the task still asks, and behind it the run goes on with it, once", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        // The next are loaded meanwhile.
        const [startSecond, startLast] = [yield* prepareMortal(access), yield* prepareMortal(access)]
        const first = yield* startMortal(access)
        const { projectId } = yield* newProject(first, access)
        const here = storyIn(first, access, projectId)
        const { run } = yield* asked(here, asking("Which?"))
        const key = keyOf(yield* taskOf(here, run))
        const giving = (story: Story, answer: string) => answering(story, run, { [key]: filled({ answer }) })
        yield* first.dieAt("task.beforeCommit", 1)
        yield* Effect.forkChild(Effect.exit(giving(here, "lost")))
        yield* first.died

        const second = yield* startSecond
        const there = storyIn(second, access, projectId)
        expect(Object.keys((yield* taskOf(there, run)).inputRequests)).toEqual([key])
        yield* second.dieAt("run.afterClaim", 1)
        yield* Effect.forkChild(Effect.exit(giving(there, "kept")))
        yield* second.died

        // Its client never knew whether that was heard, and says it again; somebody else says otherwise.
        const last = storyIn(yield* startLast, access, projectId)
        for (const answer of ["kept", "late"])
          expect((yield* giving(last, answer)).result).toMatchObject({ resultType: "complete" })
        const task = yield* taskWhen(last, run, "completed")
        expect(task.result.content[0].text).toBe('ask_user: {"answer":"kept"}; ')
        expect(yield* ended(last, run)).toMatchObject({ stepCount: 2 })
        expect((yield* callsOf(last, run)).map(({ status }) => status)).toEqual(["completed"])
        expect(yield* questionsOf(last, "completed")).toHaveLength(1)
        expect(typesIn(yield* logOfRun(last, run), "ToolCallCompletedEvent")).toHaveLength(1)
      })
    )
  )
})

/** A run that has ended: who came second held it when its worker was told of it, so that only a sweep finds it. */
const endedInTime = (story: Story, run: Json) =>
  asTimePasses(500, story.get(`/runs/${run.id}`), ({ completedAt }: Json) => completedAt !== null)

/** Gives the same answers to both servers while the run is held, so that each has seen what is asked before either does anything. */
const atOnce = Effect.fnUntraced(function* (
  stories: ReadonlyArray<Story>,
  held: { readonly table: string; readonly id: string },
  give: (story: Story) => Effect.Effect<Json>
) {
  const { access } = yield* TwoServers
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const row = `select from kb.${held.table} where id = '${held.id}' for update`
      const holder = yield* holding(access, row)
      const release = Effect.andThen(
        whenWaiting(access, stories.length),
        Effect.orDie(holder.query("commit"))
      )
      const [answers] = yield* Effect.all([Effect.all(stories.map(give), { concurrency: 2 }), release], {
        concurrency: 2
      })
      return answers
    })
  )
})

layer(TwoServers.layer)((it) => {
  describe("The same answer at two servers at once, and once more", () => {
    it.effect("a question is answered once", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const { run } = yield* asked(story, asking("Which?"))
        const responses = { [keyOf(yield* taskOf(story, run))]: filled({ answer: "this" }) }
        const give = (at: Story) => answering(at, run, responses)
        for (const { error } of [
          ...(yield* atOnce([story, other], { table: "agent_runs", id: run.id }, give)),
          yield* give(story)
        ])
          expect(error).toBeUndefined()
        expect(yield* endedInTime(story, run)).toMatchObject({ status: "completed", stepCount: 2 })
        expect(typesIn(yield* logOfRun(story, run), "ToolCallCompletedEvent")).toHaveLength(1)
      })
    )

    it.effect("a stopped run goes on once", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const run = yield* stopped(story)
        const responses = { [keyOf(yield* taskOf(story, run))]: filled({ decision: "resume" }) }
        const give = (at: Story) => answering(at, run, responses)
        for (const { error } of [
          ...(yield* atOnce([story, other], { table: "agent_runs", id: run.id }, give)),
          yield* give(story)
        ])
          expect(error).toBeUndefined()
        expect(yield* endedInTime(story, run)).toMatchObject({ status: "completed", summary: "Done." })
        const log = yield* logOfRun(story, run)
        expect(typesIn(log, "RunResumedEvent")).toHaveLength(1)
        expect(typesIn(log, "AgentTurnStartedEvent")).toHaveLength(2)
      })
    )

    it.effect("a suggestion is carried out once", () =>
      Effect.gen(function* () {
        const { other, story } = yield* bothDoors
        const { run, tasks } = yield* suggested(story, creating("kept"))
        const responses = { [keyOf(yield* taskOf(story, run))]: filled({ decision: "approve" }) }
        const give = (at: Story) => answering(at, run, responses)
        for (const { error } of [
          ...(yield* atOnce([story, other], { table: "tasks", id: tasks[0].id }, give)),
          yield* give(story)
        ])
          expect(error).toBeUndefined()
        const { items } = yield* story.get("/objects?type=Note")
        expect(items).toMatchObject([{ key: "kept", version: 1 }])
      })
    )
  })
})
