/**
 * `tropism contexts` on a real server: what there is, what stands in a log, and whether it replays to itself.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem } from "effect"
import {
  pickColour,
  picking,
  repeatingResults,
  summaryNow,
  waitingCalls
} from "../../server/testing/client-tool-words.ts"
import { addEvent, logOf, newContext, quietLog } from "../../server/testing/context-words.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { ask } from "../../server/testing/owner-rows.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { type Invocation, invokeWith, invokeWithInto, until } from "../testing/invoke.ts"

/** A server on which somebody has spoken with an agent, and the command. */
const scene = Effect.gen(function* () {
  const access = yield* freshDatabase
  const story = yield* newProject(yield* startServer(access), access)
  yield* newContext(story, "talk")
  yield* addEvent(story, "talk", "Hello\u001B[2J")
  const log = yield* quietLog(story, "talk")
  const environment = { TROPISM_TOKEN: story.token }
  return {
    story,
    log,
    contexts: (...args: ReadonlyArray<string>) =>
      invokeWith(environment, "contexts", ...args, "--url", story.url),
    contextsInto: (out: Array<string>, ...args: ReadonlyArray<string>) =>
      invokeWithInto(out, environment, "contexts", ...args, "--url", story.url)
  }
}).pipe(Effect.provide(NodeServices.layer))

/** How a command ended, and the problem that the server answered. */
const problemOf = ({ error, exitCode }: Invocation) => [exitCode, JSON.parse(error).error.problem]

describe("tropism contexts", () => {
  it.live("lists, shows, forks and interrupts, and says what cannot be done", () =>
    Effect.gen(function* () {
      const { contexts, log, story } = yield* scene
      const forked = yield* contexts("fork", "talk", "what-if", "--at", "3")
      expect(forked).toMatchObject({
        exitCode: 0,
        out: [expect.stringMatching(/\bwhat-if\b.*\btalk\b.*\b3\b/)]
      })
      const listed = yield* contexts()
      expect(listed.out.map((line) => line.split(/\s{2,}/).slice(0, 4))).toEqual([
        ["CONTEXT", "AGENT", "EVENTS", "FORKED FROM"],
        ["what-if", "agent-of-talk", expect.stringMatching(/^\d+$/), "talk:3"],
        ["talk", "agent-of-talk", String(log.length), expect.anything()]
      ])
      const json = yield* contexts("--agent", "agent-of-talk", "--json")
      expect(JSON.parse(json.out.join(""))).toEqual((yield* story.get("/contexts")).items)
      const shown = yield* contexts("show", "talk")
      expect(shown.out).toContainEqual(expect.stringMatching(/^Turns +1$/))
      expect(shown.out).toContainEqual(expect.stringMatching(/^Reducer +truncating$/))
      const idle = yield* contexts("interrupt", "talk", "--json")
      expect(problemOf(idle)).toEqual([1, expect.objectContaining({ status: 409, reason: "state" })])
      const nowhere = yield* contexts("show", "nowhere", "--json")
      expect(problemOf(nowhere)).toEqual([1, expect.objectContaining({ status: 404 })])
      expect((yield* contexts("show", "a:b")).exitCode).toBe(2)
    })
  )

  it.live("says a first word in a fork, and makes none where that is refused", () =>
    Effect.gen(function* () {
      const { contexts } = yield* scene
      const forked = yield* contexts("fork", "talk", "aside", "--message", "And in Spanish?")
      expect(forked).toMatchObject({
        exitCode: 0,
        out: [
          expect.stringMatching(/\baside\b.*\btalk\b.*\b\d+\b/),
          expect.stringContaining("tropism contexts tail aside")
        ]
      })
      expect((yield* contexts("log", "aside")).out.join("\n")).toContain("And in Spanish?")
      const silent = yield* contexts("fork", "talk", "silent", "--message", "")
      expect(silent.exitCode).not.toBe(0)
      expect(silent.error).toMatch(/message/)
      expect(problemOf(yield* contexts("show", "silent", "--json"))).toEqual([
        1,
        expect.objectContaining({ status: 404 })
      ])
    })
  )

  it.live("prints a log, for people and as it is kept, and follows it", () =>
    Effect.gen(function* () {
      const { contexts, contextsInto, log, story } = yield* scene
      const table = yield* contexts("log", "talk")
      expect(table.out).toHaveLength(log.length + 1)
      expect(table.out.join("\n")).toContain("UserMessage")
      expect(table.out.join("\n")).not.toContain("\u001B")
      expect(JSON.parse((yield* contexts("log", "talk", "--json")).out.join(""))).toEqual(log)
      const out: Array<string> = []
      const tail = yield* Effect.forkChild(contextsInto(out, "tail", "talk", "--json", "--after", "2"))
      yield* until(() => out.length >= log.length - 2)
      yield* addEvent(story, "talk", "Again")
      yield* quietLog(story, "talk")
      const whole = (yield* logOf(story, "talk")).slice(2)
      yield* until(() => out.length >= whole.length)
      expect(out.map((line) => JSON.parse(line))).toEqual(whole)
      yield* Fiber.interrupt(tail)
    })
  )

  it.live("prints what a newer version has written, too", () =>
    Effect.gen(function* () {
      const { contexts, log, story } = yield* scene
      yield* ask(
        story.access,
        `insert into kb.context_events (project_id, context_name, number, type, payload, parent_event_id, triggers_agent_turn, created_at)
         values ($1, 'talk', $2, 'DreamtEvent', '{"of": "sheep"}', 'talk:1', false, now())`,
        [story.projectId, log.length + 1]
      )
      yield* ask(
        story.access,
        "update kb.contexts set last_event_number = $2 where project_id = $1 and name = 'talk'",
        [story.projectId, log.length + 1]
      )
      const table = yield* contexts("log", "talk")
      expect(table.out.at(-1)).toContain("Dreamt")
      const kept = yield* contexts("log", "talk", "--json")
      expect(JSON.parse(kept.out.join("")).at(-1)).toMatchObject({
        type: "DreamtEvent",
        id: `talk:${log.length + 1}`,
        parentEventId: "talk:1"
      })
    })
  )

  it.live("S004-F02 defines a tool, answers its call, and reports why a second answer is refused", () =>
    Effect.gen(function* () {
      const { contexts, story } = yield* scene
      yield* newContext(story, "work", repeatingResults(picking()))
      const folder = yield* Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectory())
      const schema = `${folder}/pick-colour.json`
      yield* Effect.flatMap(FileSystem.FileSystem, (files) =>
        files.writeFileString(schema, JSON.stringify(pickColour.inputSchema))
      )
      expect((yield* contexts("define-tool", "work", "pick_colour", "--schema", schema)).exitCode).toBe(0)
      yield* addEvent(story, "work", "Go")
      const [call] = yield* waitingCalls(story, 1, "work")
      const callId = call?.callId as string
      expect((yield* contexts("answer-tool", "work", callId)).exitCode).toBe(2)
      const answered = yield* contexts("answer-tool", "work", callId, "--result", '{"colour":"green"}')
      expect(answered).toMatchObject({ exitCode: 0, out: [expect.stringContaining(callId)] })
      yield* quietLog(story, "work")
      expect(yield* summaryNow(story)).toBe('pick_colour: {"colour":"green"}; ')
      const again = yield* contexts("answer-tool", "work", callId, "--error", "Closed", "--json")
      expect(problemOf(again)).toEqual([1, expect.objectContaining({ status: 409, reason: "answered" })])
      expect((yield* contexts("define-tool", "work", "pick_colour")).exitCode).toBe(0)
      expect((yield* story.get("/contexts/work/state")).config.tools).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("S004-F19 replays a log, and ends with 1 where it does not replay to itself", () =>
    Effect.gen(function* () {
      const { contexts, log, story } = yield* scene
      const equal = yield* contexts("replay", "talk")
      expect(equal).toMatchObject({
        exitCode: 0,
        out: [
          expect.stringMatching(`\\b${log.length}\\b.*\\btalk\\b.*\\b${log.length - 1}\\b`),
          expect.not.stringContaining(":")
        ]
      })
      yield* ask(
        story.access,
        `update kb.context_events set payload = '{"turnNumber": 4}' where type = 'AgentTurnStartedEvent'`
      )
      const { error, exitCode, out } = yield* contexts("replay", "talk")
      expect({ error, exitCode }).toEqual({
        exitCode: 1,
        error: expect.stringMatching(/\btalk\b/)
      })
      expect(out.at(-2)).toMatch(/^talk:\d: .*\bturnNumber\b/)
      expect(out.at(-1)).toBe("  turnNumber: 1 → 4")
      const json = yield* contexts("replay", "talk", "--json")
      expect(JSON.parse(json.out.join(""))).toEqual(yield* story.get("/contexts/talk/replay"))
    })
  )
})
