/**
 * The agents of the bench: one that reacts, and a crowd that listens to other things.
 */
import type { Json, Send } from "./doors.ts"

/** The type of object that wakes the agent. */
export const wakingType = "Order"

/** What the agent does when it is woken: how many steps its run takes. */
export type Work = "says one sentence" | "calls one tool, then says one sentence"

const rulesOf: Readonly<Record<Work, ReadonlyArray<Json>>> = {
  "says one sentence": [{ say: "Seen." }],
  "calls one tool, then says one sentence": [
    {
      when: "step == 0",
      calls: [
        {
          tool: "update_object",
          arguments: {
            objectId: "{{ input.objectId }}",
            properties: { seen: true },
            reasoning: "It was not seen yet."
          }
        }
      ]
    },
    { say: "Seen." }
  ]
}

const definition = (name: string, objectType: string, rules: ReadonlyArray<Json>) => ({
  name,
  prompt: '```json\n{"objectId": {{ event.objectId | json }}}\n```',
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  reactionConfig: { objectTypes: [objectType], events: ["created"] },
  model: { provider: "scripted", name: "bench", script: { rules } }
})

/** Registers an agent that reacts, to the waking type unless another is given, and answers its id. */
export const registerAgent = async (
  send: Send,
  path: string,
  work: Work,
  { name, objectType }: { readonly name: string; readonly objectType: string } = {
    name: "reacts",
    objectType: wakingType
  }
): Promise<string> => (await send("POST", `${path}/agents`, definition(name, objectType, rulesOf[work]))).id

/** Registers agents that listen, each to a type of its own that nobody writes. */
export const registerCrowd = async (send: Send, path: string, from: number, count: number): Promise<void> => {
  for (let number = from; number < from + count; number++)
    await send("POST", `${path}/agents`, definition(`listens-${number}`, `Other${number}`, [{ say: "" }]))
}
