/**
 * What the last prompt of a long run costs: what the engine makes of it, and what a provider's package does.
 *
 * The engine goes on where the request before ended. A provider is sent the whole
 * conversation each time, so its package makes one text of all of it: that part
 * grows with the conversation whatever the engine does. Nothing is sent here.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { grow } from "@tropism/domain/grown"
import type { Message } from "@tropism/domain/message"
import { toAiSdkPrompt } from "@tropism/server/models/ai-sdk-prompt"
import { toPrompt } from "@tropism/server/models/retry"
import { Effect } from "effect"
import { nowMs } from "./doors.ts"
import { type Report, quantile } from "./figures.ts"

const step = (number: number): ReadonlyArray<Message> => [
  {
    role: "assistant",
    content: [
      {
        type: "tool-call",
        id: `call_${number}`,
        name: "search_objects",
        params: { type: "Nothing", limit: 1 }
      }
    ]
  },
  {
    role: "tool",
    content: [
      {
        type: "tool-result",
        id: `call_${number}`,
        name: "search_objects",
        isFailure: false,
        result: { objects: [] }
      }
    ]
  }
]

const requests = 40

/** The median milliseconds of the last requests of a run: until the engine hands the prompt over, and until the package would send it. */
const measure = async (steps: number) => {
  let sentAt = Number.NaN
  const fetchNothing = () => {
    sentAt = nowMs()
    return Promise.resolve(
      new Response("data: [DONE]\n\n", { headers: { "content-type": "text/event-stream" } })
    )
  }
  const provider = createOpenAICompatible({
    name: "bench",
    baseURL: "http://127.0.0.1:1/v1",
    fetch: Object.assign(fetchNothing, { preconnect: fetch.preconnect })
  })
  const model = provider.chatModel("bench")
  const engine: Array<number> = []
  const itsPackage: Array<number> = []
  let messages: ReadonlyArray<Message> = [{ role: "user", content: "Begin." }]
  for (let number = 0; number < steps; number++) {
    messages = grow(messages, step(number))
    const begun = nowMs()
    const prompt = toAiSdkPrompt(await Effect.runPromise(toPrompt(messages)), {
      name: "p:m",
      joinsNeighbours: false,
      answersTools: false,
      pictures: "result",
      lateSystemMessages: false
    })
    const made = nowMs()
    if (number < steps - requests) continue
    await model.doStream({ prompt })
    engine.push(made - begun)
    itsPackage.push(sentAt - made)
  }
  return { engine: quantile(engine, 0.5), itsPackage: quantile(itsPackage, 0.5) }
}

export const measureLastPrompt = async (report: Report, steps: number): Promise<void> => {
  await measure(2 * requests)
  const early = await measure(2 * requests)
  const late = await measure(steps + requests)
  const load = `a run of ${steps.toLocaleString("en")} steps`
  const few = { name: `at step ${2 * requests}`, value: early.engine }
  report({
    name: "the last prompt, until the engine hands it over",
    load,
    value: late.engine,
    unit: "ms",
    beside: few
  })
  report({
    name: "the last prompt, until a provider's package sends it",
    load,
    value: late.itsPackage,
    unit: "ms",
    beside: { name: `at step ${2 * requests}`, value: early.itsPackage }
  })
}
