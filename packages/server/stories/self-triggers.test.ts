/**
 * Whose changes wake an agent: ignoreSelfTriggered × ignoreAgentTriggered × who wrote.
 *
 * The rules read the actor of the event. What a person approved is the agent's
 * own change, whoever clicked.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve } from "../testing/suggestion-words.ts"
import { calling, endedRuns, entriesOf, make, suggestionsOf, watcher } from "../testing/story-words.ts"

type Outcome = "woken" | "selfTriggered" | "agentTriggered"
type Writer = "a user" | "the agent itself" | "another agent" | "its approved suggestion" | "its sub-agent"

interface Cell {
  readonly ignoreSelf: boolean
  readonly ignoreAgent: boolean
  readonly writer: Writer
  readonly outcome: Outcome
}

/** What becomes of a change of each writer: with (self, agent) ignored, by (yes, yes), (yes, no), (no, yes), (no, no). */
const rows: ReadonlyArray<readonly [Writer, Outcome, Outcome, Outcome, Outcome]> = [
  ["a user", "woken", "woken", "woken", "woken"],
  ["the agent itself", "selfTriggered", "selfTriggered", "agentTriggered", "woken"],
  ["another agent", "agentTriggered", "woken", "agentTriggered", "woken"],
  ["its approved suggestion", "selfTriggered", "selfTriggered", "agentTriggered", "woken"],
  // A sub-agent is an agent of its own that acts for its parent.
  ["its sub-agent", "agentTriggered", "woken", "agentTriggered", "woken"]
]

const matrix: ReadonlyArray<Cell> = rows.flatMap(([writer, ...outcomes]) =>
  outcomes.map((outcome, index) => ({ ignoreSelf: index < 2, ignoreAgent: index % 2 === 0, writer, outcome }))
)

const note = { tool: "create_object", arguments: { type: "Note", properties: {} } }

/** An agent that looks at Notes, makes one when there is a Start, suggests one when there is a Wish and lets another make one when there is a Call. */
const subjectOf = (story: Story, { ignoreAgent, ignoreSelf }: Cell) =>
  story.post(
    "/agents",
    watcher({
      name: "subject",
      tools: ["graph.*", "run.*"],
      subAgents: ["helper"],
      reactionConfig: {
        objectTypes: ["Note", "Start", "Wish", "Call"],
        events: ["created"],
        ignoreSelfTriggered: ignoreSelf,
        ignoreAgentTriggered: ignoreAgent
      },
      model: scripted([
        { when: 'step == 0 and input.event.objectType == "Start"', calls: [note] },
        {
          when: 'step == 0 and input.event.objectType == "Wish"',
          calls: [{ ...note, arguments: { ...note.arguments, suggest: true } }]
        },
        {
          when: 'step == 0 and input.event.objectType == "Call"',
          calls: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Make a Note." } }]
        },
        { say: "Seen." }
      ])
    })
  )

/** Lets the writer of a cell make a Note. */
const write = Effect.fnUntraced(function* (story: Story, writer: Writer) {
  switch (writer) {
    case "a user":
      return yield* make(story, "Note")
    case "the agent itself":
      return yield* make(story, "Start")
    case "another agent": {
      const other = { name: "other", triggerType: "manual", reactionConfig: null, model: calling(note) }
      const agent = yield* story.post("/agents", watcher(other))
      return yield* story.post(`/agents/${agent.id}/trigger`)
    }
    case "its sub-agent": {
      const helper = { name: "helper", triggerType: "manual", reactionConfig: null, model: calling(note) }
      yield* story.post("/agents", watcher(helper))
      return yield* make(story, "Call")
    }
    case "its approved suggestion": {
      yield* make(story, "Wish")
      const [task] = yield* suggestionsOf(story, 1)
      return yield* approve(story, task)
    }
  }
})

const noteEventOf = (story: Story): Effect.Effect<Json> =>
  Effect.map(
    eventually(story.get("/events"), (page) => page.items.some(isNote)),
    (page) => page.items.find(isNote)
  )

const isNote = (event: Json): boolean => event.objectType === "Note"

layer(SharedServer.layer)((it) => {
  describe("Risk: infinite loops from agent changes", () => {
    for (const cell of matrix) {
      const { ignoreAgent, ignoreSelf, outcome, writer } = cell
      it.effect(
        `S001-K01 ignoreSelfTriggered ${ignoreSelf}, ignoreAgentTriggered ${ignoreAgent}: a change by ${writer} is ${outcome}`,
        () =>
          Effect.gen(function* () {
            const story = yield* newStoryHere
            const subject = yield* subjectOf(story, cell)
            yield* write(story, writer)
            const event = yield* noteEventOf(story)
            const own = { actorType: "agent", actorId: subject.id }
            if (writer === "a user") expect(event.actorType).toBe("user")
            else if (writer === "another agent" || writer === "its sub-agent")
              expect(event).toMatchObject({
                actorType: "agent",
                actorId: expect.not.stringMatching(subject.id)
              })
            else expect(event).toMatchObject(own)
            expect(event.approvedBy === null).toBe(writer !== "its approved suggestion")

            const entries = (yield* entriesOf(story, subject)).filter((entry) => entry.eventId === event.id)
            const told = yield* story.get(`/agents/${subject.id}/explain?eventId=${event.id}`)
            const isWoken = outcome === "woken"
            expect({ entries: entries.length, outcome: told.outcome, rule: told.rule }).toEqual({
              entries: isWoken ? 1 : 0,
              outcome: isWoken ? "woke" : "refused",
              rule: isWoken ? null : outcome
            })
            // One more run where it was woken: a Start, a Wish, a Call and a Note of a user have one each.
            const runs = (writer === "a user" || writer === "another agent" ? 0 : 1) + (isWoken ? 1 : 0)
            expect(yield* endedRuns(story, subject, runs)).toHaveLength(runs)
          })
      )
    }

    it.effect("S001-K01 the matrix has twenty cells", () =>
      Effect.sync(() => {
        const keys = matrix.map(
          ({ ignoreAgent, ignoreSelf, writer }) => `${ignoreSelf} ${ignoreAgent} ${writer}`
        )
        expect(new Set(keys).size).toBe(20)
      })
    )
  })
})
