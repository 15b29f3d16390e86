/**
 * An agent written as YAML is read back as the same agent.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent } from "@tropism/domain/agent"
import { definitionOf } from "@tropism/domain/agent-version"
import { Arbitrary, Result, Schema } from "effect"
import { agent } from "../testing/records.ts"
import { parseDefinitions } from "./agent-files.ts"
import { agentsYaml, agentYaml } from "./agent-yaml.ts"

const piece = Schema.Literals([
  " ",
  "  ",
  "\t",
  "\n",
  "\n\n",
  "\r",
  "\r\n",
  ":",
  ": ",
  "#",
  " #",
  "-",
  "- ",
  "---",
  "...",
  "'",
  '"',
  "\\",
  "|",
  ">",
  "%",
  "&a",
  "*a",
  "!t",
  "yes",
  "null",
  "~",
  "0x1",
  "1e3",
  "2026-01-01",
  "{{ x }}",
  "{",
  "[",
  ",",
  "é",
  "\u2028",
  "\u0085",
  "\ufeff",
  "\u0007",
  "🦊",
  "word"
])

const texts = Arbitrary.map(
  Arbitrary.schema(Schema.Array(piece).check(Schema.isBetweenLength(1, 8))),
  (pieces) => pieces.join("")
)

const readBack = (yaml: string) =>
  Result.getOrThrow(parseDefinitions("a.yaml", yaml)).map(({ input }) => defineAgent(input))

describe("agentYaml", () => {
  it.prop(
    "is read back as the same definition, whatever its texts hold",
    [texts, texts],
    ([prompt, role]) => {
      const written = agent(1, { name: "a", prompt, role, systemPrompt: prompt + role })
      expect(readBack(agentYaml(written))).toEqual([definitionOf(written)])
      expect(readBack(agentsYaml([written, written]))).toHaveLength(2)
    },
    { arbitrary: { runs: 500 } }
  )

  it.each([" \n", "\n", "  ", "\t\n\n", " \n x\n"])(
    "keeps %j, which is nothing but white space or nearly",
    (prompt) => {
      const written = agent(1, { name: "a", prompt })
      expect(readBack(agentYaml(written))).toEqual([definitionOf(written)])
    }
  )

  it("leaves out defaults, except tools", () => {
    expect(agentYaml(agent(1, { name: "a", prompt: "One\ntwo\n", timezone: "UTC", enabled: true }))).toBe(
      "name: a\ntriggerType: manual\nprompt: |\n  One\n  two\ntools:\n  - graph.*\n"
    )
  })
})
