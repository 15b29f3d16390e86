/**
 * The words in which stories speak with agents and read what their logs say.
 */
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import type { EventStream, Heard } from "./event-stream.ts"
import { eventually, type Json, scripted, type Story } from "./platform.ts"

/** Repeats the message and counts what the user has said so far: it can know both from the log alone. */
export const echo = scripted([{ say: "Answer {{ turn }}: {{ message }}" }])

/** The same, after some seconds of silence. */
export const slowEcho = scripted([{ say: "Answer {{ turn }}: {{ message }}", latencyMs: 5_000 }])

/** Fails at the first message, and answers whatever is said afterwards. */
export const failingOnce = scripted([
  { when: "turn == 1", say: "", fault: { kind: "error", message: "Out of order" } },
  { say: "Answer {{ turn }}: {{ message }}" }
])

/** Makes one note in each step for as long as it has tools; after being told to go on it knows what it was told. */
export const noteTaker = scripted([
  { when: "tools.size == 0", say: "So far so good." },
  { when: 'message contains "enough"', say: "You said: {{ message }}" },
  {
    say: "",
    calls: [
      { tool: "create_object", arguments: { type: "Note", properties: { name: "{{ turn }}.{{ step }}" } } }
    ]
  }
])

/** Makes an agent and a context in which it can be spoken to. */
export const newContext = Effect.fn("newContext")(function* (
  story: Story,
  name: string,
  model: Json = echo,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* story.post("/agents", {
    name: `agent-of-${name}`,
    prompt: "Answer.",
    triggerType: "manual",
    tools: ["graph.*"],
    executionMode: "execute",
    model,
    ...overrides
  })
  yield* story.post("/contexts", { name, agentId: agent.id })
  return agent
})

/** Adds a message to a context; it asks for an answer unless it says otherwise. */
export const addEvent = (story: Story, name: string, content: string, triggersAgentTurn?: boolean) =>
  Effect.tap(say(story, name, content, triggersAgentTurn), () => quietness)

/** The same, with no time passing behind it: whoever gathers messages goes on to wait. */
export const say = (story: Story, name: string, content: string, triggersAgentTurn?: boolean) =>
  story.ask("POST", `/contexts/${name}/events`, { type: "UserMessageEvent", content, triggersAgentTurn })

/** The time after which nobody is thought to be still speaking, where a story's clock stands still (S004-R39). */
export const quietness = Effect.flatMap(Clock.Clock, (clock) =>
  "adjust" in clock ? TestClock.adjust(100) : Effect.void
)

/** The log of a context as it is now. */
export const logOf = (story: Story, name: string): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/contexts/${name}/events?limit=200`), (page) => page.items)

/** The log, once it has so many events of a type. */
export const logWith = (
  story: Story,
  name: string,
  type: string,
  count = 1
): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(logOf(story, name), (events) => countOf(events, type) >= count)

/** Whether every run of the project has ended. */
export const isQuiet = (runs: Json): boolean => runs.items.every((run: Json) => run.completedAt !== null)

/** The log, once every run of the project has ended; it replays to itself (S004-F19). */
export const quietLog = (story: Story, name: string): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.all([
    eventually(story.get("/runs?limit=200"), isQuiet),
    eventually(story.get(`/contexts/${name}/replay`), ({ isEqual }) => isEqual, 0)
  ]).pipe(Effect.andThen(logOf(story, name)))

export const typesOf = (events: ReadonlyArray<Json>): ReadonlyArray<string> =>
  events.map((event) => event.type)

export const countOf = (events: ReadonlyArray<Json>, type: string): number =>
  events.filter((event) => event.type === type).length

export const firstOf = (events: ReadonlyArray<Json>, type: string): Json =>
  events.find((event) => event.type === type)

/** What the events of a type say, in order. */
export const contentsOf = (events: ReadonlyArray<Json>, type: string): ReadonlyArray<string> =>
  events.filter((event) => event.type === type).map((event) => event.content)

/** Each beginning and end of a turn with its number. */
export const turnsOf = (events: ReadonlyArray<Json>): ReadonlyArray<readonly [string, number]> =>
  events
    .filter((event) => event.type.startsWith("AgentTurn"))
    .map((event) => [event.type, event.turnNumber] as const)

/** The ids of a log with so many events and no gap. */
export const idsUpTo = (name: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `${name}:${index + 1}`)

/** What a stream brought that the log keeps. */
export const keptOf = (stream: EventStream): ReadonlyArray<Heard> =>
  stream.heard.filter((heard) => heard.id !== undefined)

/** What a stream brought that passes by. */
export const passingOf = (stream: EventStream): ReadonlyArray<Heard> =>
  stream.heard.filter((heard) => heard.id === undefined)
