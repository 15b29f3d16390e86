/**
 * Agents that would go on for ever: each game is a loop that only a cap can end.
 *
 * A game has a type of object of its own, so that it is played where somebody
 * throws one in and nowhere else.
 */
import type { AgentInput } from "@tropism/domain/agent"
import type { ScriptRule } from "@tropism/domain/script"
import type { Chance } from "./chance.ts"
import { drawReaction, note, prompt, reasoning } from "./reacting.ts"

export interface Game {
  /** The type whose first object starts it. */
  readonly objectType: string
  readonly agents: ReadonlyArray<AgentInput>
}

type Events = ReadonlyArray<"created" | "updated" | "deleted">

const player = (
  name: string,
  [objectType, events]: readonly [string, Events],
  rules: ReadonlyArray<ScriptRule>,
  chance: Chance,
  heedsItself = false
): AgentInput => ({
  name,
  prompt,
  triggerType: "reaction",
  executionMode: chance.oneIn(4) ? "hybrid" : "execute",
  hybridPolicy: { alwaysSuggest: [] },
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, {
    objectTypes: [objectType],
    events,
    ignoreSelfTriggered: !heedsItself
  }),
  model: { provider: "scripted", name, script: { rules: [...rules, { say: "Played." }] } }
})

const noting = (property: string): ReadonlyArray<ScriptRule> => [
  { when: "step == 0", calls: [note(property)] }
]

/** Two that answer each other. */
const pingPong = (chance: Chance): Game => ({
  objectType: "Ball",
  agents: ["ping", "pong"].map((name) =>
    player(name, ["Ball", ["created", "updated"]], noting(name), chance.fork(name))
  )
})

/** One that reacts to what it did itself. */
const spinner = (chance: Chance): Game => ({
  objectType: "Top",
  agents: [player("spinner", ["Top", ["created", "updated"]], noting("turns"), chance, true)]
})

const create = (objectType: string, key?: string) => ({
  tool: "create_object",
  arguments: {
    type: objectType,
    properties: { from: "{{ input.object.id }}" },
    ...(key === undefined ? {} : { key }),
    reasoning,
    confidence: 0.95
  }
})

/** Each event makes two. */
const bomber = (chance: Chance): Game => ({
  objectType: "Bomb",
  agents: [
    player(
      "bomber",
      ["Bomb", ["created"]],
      [{ when: "step == 0", calls: [create("Bomb"), create("Bomb")] }],
      chance,
      true
    )
  ]
})

/** One deletes what is made, another makes it again. */
const phoenix = (chance: Chance): Game => ({
  objectType: "Phoenix",
  agents: [
    player(
      "burner",
      ["Phoenix", ["created"]],
      [
        {
          when: "step == 0",
          calls: [
            { tool: "delete_object", arguments: { objectId: "{{ input.object.id }}", confidence: 0.95 } }
          ]
        }
      ],
      chance.fork("burner")
    ),
    player(
      "reviver",
      ["Phoenix", ["deleted"]],
      [{ when: "step == 0", calls: [create("Phoenix", "the one")] }],
      chance.fork("reviver")
    )
  ]
})

/** The game of a simulation. */
export const drawGame = (chance: Chance): Game =>
  chance.pick([pingPong, pingPong, spinner, bomber, phoenix])(chance)
