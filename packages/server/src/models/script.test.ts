/** What a script answers: the first rule that holds, in the types its author wrote. */
import { describe, expect, it } from "@effect/vitest"
import { Script } from "@tropism/domain/script"
import { Effect, Result, Schema } from "effect"
import { Prompt } from "effect/ai"
import { naming } from "../../testing/naming.ts"
import { compileScript, type ScriptAnswer, scopeOf } from "./script.ts"

type Messages = ReadonlyArray<Prompt.MessageEncoded>

const decodeScript = Schema.decodeUnknownSync(Script)

const answerOf = (
  script: unknown,
  messages: Messages,
  tools: ReadonlyArray<string> = []
): Result.Result<ScriptAnswer, string> => {
  const compiled = compileScript(decodeScript(script))
  if (Result.isFailure(compiled)) return Result.fail(compiled.failure)
  const prompt = Prompt.make([...messages])
  return compiled.success.answer(scopeOf(prompt, tools, compiled.success.values, undefined), prompt)
}

const sayOf = (script: unknown, messages: Messages, tools: ReadonlyArray<string> = []): string =>
  Result.getOrThrow(answerOf(script, messages, tools)).text

const user = (content: string): Prompt.MessageEncoded => ({ role: "user", content })
const system = (content: string): Prompt.MessageEncoded => ({ role: "system", content })
const call = (id: string, name: string): Prompt.MessageEncoded => ({
  role: "assistant",
  content: [{ type: "tool-call", id, name, params: {} }]
})
const result = (id: string, name: string, value: unknown, isFailure = false): Prompt.MessageEncoded => ({
  role: "tool",
  content: [{ type: "tool-result", id, name, result: value, isFailure }]
})

const twoSteps = {
  rules: [{ when: "step == 0", say: "first", calls: [{ tool: "t", arguments: {} }] }, { say: "second" }]
}

describe("the rules of a script", () => {
  it("the first rule that holds answers", () => {
    const script = {
      rules: [
        { when: "message contains 'cat'", say: "meow" },
        { when: "message contains 'c'", say: "c" },
        { say: "other" }
      ]
    }
    expect(sayOf(script, [user("a cat")])).toBe("meow")
    expect(sayOf(script, [user("a cow")])).toBe("c")
    expect(sayOf(script, [user("a dog")])).toBe("other")
  })

  it("a script without a rule for a message says so plainly", () => {
    expect(sayOf({ rules: [{ when: "false", say: "never" }] }, [user("hi")])).toMatch(/\b0\b/)
  })

  it("counts answers since the last message of the user", () => {
    expect(sayOf(twoSteps, [user("go")])).toBe("first")
    expect(sayOf(twoSteps, [user("go"), call("1", "t"), result("1", "t", {})])).toBe("second")
    expect(sayOf(twoSteps, [user("go"), call("1", "t"), result("1", "t", {}), user("again")])).toBe("first")
  })

  it("sees the message, the fenced input, the system prompt, the tools and its own values", () => {
    const script = {
      values: { greeting: "hello" },
      rules: [{ say: "{{ values.greeting }} {{ input.object.name }}|{{ system }}|{{ tools | join: ',' }}" }]
    }
    const message = 'Look:\n```json\n{"object": {"name": "left-pad"}}\n```\nThanks.'
    expect(sayOf(script, [system("be kind"), user(message)], ["a", "b"])).toBe("hello left-pad|be kind|a,b")
  })

  it("has no input where the block is no JSON or does not begin its line", () => {
    const script = { rules: [{ when: "input == nil", say: "none" }, { say: "some" }] }
    expect(sayOf(script, [user("```json\n{oops}\n```")])).toBe("none")
    expect(sayOf(script, [user('say "```json\n{}\n```')])).toBe("none")
    expect(sayOf(script, [user("```json\n{}\n```")])).toBe("some")
  })

  it("reads results as values, also where a tool answered JSON as text", () => {
    const script = {
      rules: [
        {
          say: "{{ results[0].tool }}:{{ results[0].result.n }}:{{ results[0].isError }}|{{ results[1].result.n }}:{{ results[1].isError }}"
        }
      ]
    }
    const messages = [
      user("go"),
      call("1", "a"),
      result("1", "a", { n: 1 }),
      result("2", "b", '{"n": 2}', true)
    ]
    expect(sayOf(script, messages)).toBe("a:1:false|2:true")
  })
})

describe("the arguments of a script's calls", () => {
  const argumentsOf = (
    args: unknown,
    message = '```json\n{"n": 7, "flag": true, "list": [1, 2], "text": "x"}\n```'
  ) => {
    const answer = Result.getOrThrow(
      answerOf({ rules: [{ calls: [{ tool: "t", arguments: args }] }] }, [user(message)])
    )
    return answer.calls[0]?.arguments
  }

  it("keep the type of a text that is one expression", () => {
    expect(
      argumentsOf({
        n: "{{ input.n }}",
        flag: "{{input.flag}}",
        list: "{{ input.list }}",
        nothing: "{{ input.zzz }}"
      })
    ).toEqual({ n: 7, flag: true, list: [1, 2], nothing: null })
  })

  it("render a text with more than one expression", () => {
    expect(
      argumentsOf({
        a: "n={{ input.n }}",
        b: "{{ input.n }}{{ input.text }}",
        c: "{% if input.flag %}yes{% endif %}"
      })
    ).toEqual({ a: "n=7", b: "7x", c: "yes" })
  })

  it("are rendered at any depth, and what is no text stays as it is", () => {
    expect(argumentsOf({ deep: [{ n: "{{ input.n }}" }, 1, null, false] })).toEqual({
      deep: [{ n: 7 }, 1, null, false]
    })
  })

  it("have ids that a replay gives again and no other place gives", () => {
    const script = {
      rules: [
        {
          calls: [
            { tool: "a", arguments: {} },
            { tool: "b", arguments: {} }
          ]
        }
      ]
    }
    const ids = (messages: Messages) =>
      Result.getOrThrow(answerOf(script, messages)).calls.map((call) => call.id)
    const first = [user("go")]
    const second = [...first, call("1", "a"), result("1", "a", {})]
    const later = [...second, user("go")]
    expect(ids(first)).toEqual(ids(first))
    expect(new Set([...ids(first), ...ids(second), ...ids(later)]).size).toBe(6)
  })
})

describe("a script with a mistake", () => {
  const faultOf = (rule: unknown): string =>
    Result.getOrThrow(Result.flip(answerOf({ rules: [{ when: "false" }, rule] }, [user("hi")])))

  it("is refused where an expression is not understood to its end", () => {
    expect(faultOf({ when: "step == 0 an message" })).toEqual(naming(2, '"step == 0 an message"'))
    expect(faultOf({ when: "step == " })).toContain('"step == "')
    expect(faultOf({ when: "step == 0) or true" })).toEqual(naming(2, '") or true"', '"step == 0) or true"'))
    expect(faultOf({ calls: [{ tool: "t", arguments: { a: "{{ message message }}" } }] })).toContain(
      "message message"
    )
  })

  it("is refused where a condition is neither true nor false", () => {
    expect(faultOf({ when: "message" })).toContain('"hi"')
  })

  it("is refused where a template is broken or names no filter", () => {
    expect(faultOf({ say: "{% if %}" })).toMatch(/\b2\b/)
    expect(faultOf({ say: "{{ message | shout }}" })).toEqual(naming(2, "shout"))
    expect(faultOf({ calls: [{ tool: "t", arguments: { a: "{{ message | shout }}" } }] })).toContain("shout")
  })

  it("cannot read a file", () => {
    expect(faultOf({ say: "{% include 'package.json' %}" })).toMatch(/\b2\b/)
    expect(faultOf({ say: "{% render '/etc/hostname' %}" })).toMatch(/\b2\b/)
  })

  it("cannot take the memory of the server", () => {
    expect(faultOf({ say: "{% for i in (1..1000000000) %}x{% endfor %}" })).toContain(
      "memory alloc limit exceeded"
    )
  })
})

it.effect("a script that names a constructor sees nothing", () =>
  Effect.sync(() => {
    expect(
      sayOf({ rules: [{ say: "[{{ input.constructor.name }}{{ message.constructor.name }}]" }] }, [
        user("```json\n{}\n```")
      ])
    ).toBe("[]")
  })
)
