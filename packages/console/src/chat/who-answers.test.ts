/**
 * Where a script answers the page says so, and where a model answers it does not.
 */
import { describe, expect, it } from "@effect/vitest"
import { scriptNotice } from "./who-answers.ts"

const openai = { provider: "openai", name: "gpt-4o" } as const
const scripted = { provider: "scripted", name: "todo" } as const
const providers = (missing: string | null) => [{ provider: "openai", defaultModel: "", missing } as const]

describe("who answers", () => {
  it.each([
    ["the agent's own script", scripted, null, { ...openai, price: null }, true],
    ["a model with its key", openai, null, null, false],
    ["a model without its key, and no other", openai, "OPENAI_API_KEY", null, true],
    ["a model without its key, and another", openai, "OPENAI_API_KEY", { ...openai, price: null }, false],
    ["no model and a script by default", null, null, { ...scripted, price: null }, true],
    ["no model and one by default", null, null, { ...openai, price: null }, false]
  ])("%s", (_, model, missing, byDefault, isScript) => {
    const notice = scriptNotice({ model, name: "Ada" }, { default: byDefault, providers: providers(missing) })
    expect(notice !== undefined).toBe(isScript)
  })
})
