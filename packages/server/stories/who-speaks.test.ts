/**
 * Several people in one context: each turn works for the person whose words it reads.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, logOf, quietLog } from "../testing/context-words.ts"
import { talker } from "../testing/conversation-words.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { answer, asking, ended } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, endedRuns, runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Adds a todo of what it was told last. */
const adding = [
  { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }] },
  { say: "{{ results | json }}" }
]

/** Asks before it adds a todo. */
const askingFirst = [
  { when: "step == 0", calls: [asking("Shall I?")] },
  { when: "step == 1", calls: [{ tool: "add_task", arguments: { title: "Noted" } }] },
  { say: "Done." }
]

const isAsking = (run: Json): boolean => run?.pauseReason === "question"

/** A project's context in which Ann and Ben speak with one agent. */
const shared = Effect.gen(function* () {
  const story = yield* newStoryHere
  const ann = yield* asUser(story, "editor", null, "ann")
  const ben = yield* asUser(story, "editor", null, "ben")
  const agent = yield* talker(story, adding)
  yield* story.post("/contexts", { name: "open", agentId: agent.id })
  const tells = Effect.fnUntraced(function* (who: Story, content: string) {
    yield* addEvent(who, "open", content)
    return yield* quietLog(who, "open")
  })
  const todosOf = (who: Story) =>
    Effect.map(who.get("/tasks?type=todo"), ({ items }) => items.map(({ title }: Json) => title))
  const callsOfRun = Effect.fnUntraced(function* (count: number) {
    const runs = yield* endedRuns(story, agent, count)
    return yield* callsOf(story, runs.at(-1))
  })
  return { story, ann, ben, agent, tells, todosOf, callsOfRun }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A turn works for the person whose words it reads", () => {
    it.effect(
      "S003-R44 S003-R45 S003-R47 S003-R48 S003-A03 every call is made for the one who spoke, and recorded so",
      () =>
        Effect.gen(function* () {
          const { story, ann, ben, tells, todosOf, callsOfRun } = yield* shared
          yield* tells(ann, "Buy milk")
          const ofAnn = yield* callsOfRun(1)
          yield* tells(ben, "Call mom")
          const ofBen = yield* callsOfRun(2)
          const record = (userId: string, title: string) => ({
            tool: "add_task",
            userId,
            arguments: { title },
            result: { task_id: 1, status: "created", title },
            createdAt: expect.any(String)
          })
          expect([ofAnn, ofBen]).toMatchObject([[record("ann", "Buy milk")], [record("ben", "Call mom")]])
          expect([ofAnn, ofBen].map(([call]) => Object.keys(call.arguments))).toEqual([["title"], ["title"]])
          expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Buy milk"], ["Call mom"]])
          expect(yield* todosOf(story)).toEqual([])
          const said = (yield* logOf(story, "open")).filter(({ type }) => type === "UserMessageEvent")
          expect(said.map(({ content, userId }) => [content, userId])).toEqual([
            ["Buy milk", "ann"],
            ["Call mom", "ben"]
          ])
        })
    )

    it.effect("S003-R46 a turn that reads the words of several works for nobody, and says why", () =>
      Effect.gen(function* () {
        const { ann, ben, tells, todosOf, callsOfRun } = yield* shared
        yield* addEvent(ben, "open", "Whatever Ann says, add it", false)
        yield* tells(ann, "Buy milk")
        expect(yield* callsOfRun(1)).toMatchObject([
          {
            userId: null,
            status: "refused",
            result: { reason: "notPermitted", error: expect.any(String) }
          }
        ])
        expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([[], []])
        yield* tells(ann, "Buy milk")
        expect(yield* callsOfRun(2)).toMatchObject([{ userId: "ann", status: "completed" }])
        expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Buy milk"], []])
      })
    )

    it.effect(
      "S003-R46 whoever has a fork answered has it done for themselves, by whatever event they ask",
      () =>
        Effect.gen(function* () {
          const { ann, ben, agent, story, tells, todosOf } = yield* shared
          const at = 1 + (yield* tells(ann, "Buy milk")).findIndex(({ content }) => content === "Buy milk")
          const events = {
            prompted: { type: "SystemPromptEvent", content: "Do what was asked" },
            timed: { type: "SetTimeoutEvent", timeoutMs: 5_000 }
          }
          for (const [index, [name, event]] of Object.entries(events).entries()) {
            yield* ben.post("/contexts/open/fork", { name, at, agentId: agent.id })
            yield* ben.post(`/contexts/${name}/events`, { ...event, triggersAgentTurn: true })
            const log = yield* quietLog(ben, name)
            const run = (yield* endedRuns(story, agent, 2 + index)).at(-1)
            expect(run.contextName).toBe(name)
            expect(yield* callsOf(story, run)).toMatchObject([{ userId: "ben", status: "completed" }])
            expect(log.find(({ type }) => type === event.type)).toMatchObject({ ...event, userId: "ben" })
          }
          expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Buy milk"], ["Buy milk", "Buy milk"]])
        })
    )

    it.effect("S003-R46 whoever lets a run go on by setting something is read with whom it worked for", () =>
      Effect.gen(function* () {
        const { ann, ben, story } = yield* shared
        const agent = yield* talker(
          story,
          [
            { when: "tools.size == 0", say: "So far." },
            { calls: [{ tool: "add_task", arguments: { title: "Step {{ step }}" } }] }
          ],
          { maxSteps: 1 }
        )
        yield* story.post("/contexts", { name: "long", agentId: agent.id })
        const restsWith = (calls: number) =>
          Effect.gen(function* () {
            const isAtRest = ([run]: ReadonlyArray<Json>) => run?.pauseReason === "stepLimit"
            const [run] = yield* eventually(runsOf(story, agent), isAtRest)
            return yield* eventually(callsOf(story, run), ({ length }) => length === calls)
          })
        yield* addEvent(ann, "long", "Plan it")
        expect(yield* restsWith(1)).toMatchObject([{ userId: "ann", status: "completed" }])
        const prompt = { type: "SystemPromptEvent", content: "Go on", triggersAgentTurn: true }
        yield* ben.post("/contexts/long/events", prompt)
        expect(yield* restsWith(2)).toMatchObject([{ userId: "ann" }, { userId: null, status: "refused" }])
      })
    )

    it.effect("S003-R46 whoever answers what the agent asked is read with whom it worked for", () =>
      Effect.gen(function* () {
        const { ann, ben, story, todosOf } = yield* shared
        const agent = yield* talker(story, askingFirst, { tools: ["tasks.*", "run.ask_user"] })
        yield* story.post("/contexts", { name: "asked", agentId: agent.id })
        const answeredBy = Effect.fnUntraced(function* (who: Story, count: number) {
          yield* addEvent(ann, "asked", "Note it")
          const run = (yield* eventually(runsOf(story, agent), (runs) => isAsking(runs[count - 1]))).at(-1)
          expect((yield* answer(who, run, "Yes")).status).toBe(200)
          yield* endedRuns(story, agent, count)
          const log = yield* quietLog(story, "asked")
          const told = log.filter(({ result }) => result?.answer === "Yes").at(-1)
          return { calls: yield* callsOf(story, run), told }
        })
        const ofBen = yield* answeredBy(ben, 1)
        expect(ofBen.calls).toMatchObject([
          { tool: "ask_user", userId: "ann", result: { answer: "Yes" } },
          {
            tool: "add_task",
            userId: null,
            status: "refused",
            result: { reason: "notPermitted" }
          }
        ])
        expect(ofBen.told).toMatchObject({ type: "ToolCallCompletedEvent", userId: "ben" })
        const ofAnn = yield* answeredBy(ann, 2)
        expect(ofAnn.calls).toMatchObject([{ userId: "ann" }, { userId: "ann", status: "completed" }])
        expect(ofAnn.told).toMatchObject({ userId: "ann" })
        expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Noted"], []])
      })
    )

    it.effect(
      "S003-R46 a step of a flow is of whoever began the run, and an answer in it of who gave it",
      () =>
        Effect.gen(function* () {
          const { ann, ben, story, todosOf } = yield* shared
          const agent = yield* talker(
            story,
            [{ when: 'message == "Plan"', say: "Planned." }, ...askingFirst],
            {
              tools: ["tasks.*", "run.ask_user"],
              flowType: "sequential",
              steps: [
                { name: "plan", prompt: "Plan" },
                { name: "note", prompt: "Note" }
              ]
            }
          )
          const callsAnsweredBy = Effect.fnUntraced(function* (who: Story) {
            const run = yield* ann.post(`/agents/${agent.id}/trigger`)
            expect(isAsking(run)).toBe(true)
            yield* answer(who, run, "Yes")
            yield* ended(story, run)
            return yield* callsOf(story, run)
          })
          expect(yield* callsAnsweredBy(ben)).toMatchObject([
            { tool: "ask_user", userId: "ann" },
            { tool: "add_task", userId: null, status: "refused" }
          ])
          expect(yield* callsAnsweredBy(ann)).toMatchObject([
            { userId: "ann" },
            { userId: "ann", status: "completed" }
          ])
          expect([yield* todosOf(ann), yield* todosOf(ben)]).toEqual([["Noted"], []])
        })
    )

    it.effect("S003-R44 who speaks is the request's to say, never the message's", () =>
      Effect.gen(function* () {
        const { ann, ben, story } = yield* shared
        for (const injected of [{ userId: "ben" }, { user_id: "ben" }]) {
          const answer = yield* ann.ask("POST", "/contexts/open/events", {
            type: "UserMessageEvent",
            content: "Buy milk",
            ...injected
          })
          expect(answer.status).toBe(422)
        }
        expect((yield* ben.get("/tasks?type=todo")).items).toEqual([])
        expect((yield* logOf(story, "open")).some(({ type }) => type === "UserMessageEvent")).toBe(false)
      })
    )
  })
})
