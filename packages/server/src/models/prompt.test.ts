/** What models are sent is what it would be if each request were made from its beginning. */
import { describe, expect, it } from "@effect/vitest"
import { grow } from "@tropism/domain/grown"
import { type Message, quoted } from "@tropism/domain/message"
import { Arbitrary, Effect, Schema } from "effect"
import { Prompt } from "effect/ai"
import { charsOf, charsOfList } from "./ai-sdk-model.ts"
import { toAiSdkPrompt } from "./ai-sdk-prompt.ts"
import { toPrompt } from "./retry.ts"
import { scopeOf } from "./script.ts"

const word = Schema.Literals(["", "a", '```json\n{"n": 1}\n```', '{"b": [2]}'])
const Part = Schema.Struct({
  kind: Schema.Literals(["text", "file", "call", "result"]),
  word,
  isFailure: Schema.Boolean
})
const anyMessage: Arbitrary.Arbitrary<Message> = Arbitrary.all([
  Arbitrary.schema(Schema.Literals(["system", "user", "said", "assistant", "tool"])),
  Arbitrary.schema(word),
  Arbitrary.array(Arbitrary.schema(Part), { maxLength: 3 })
]).pipe(
  Arbitrary.map(([role, content, parts]): Message => {
    if (role === "system") return { role, content }
    if (role === "said") return { role: "user", content }
    if (role === "user")
      return {
        role,
        content: parts.map(({ kind, word: text }) =>
          kind === "file"
            ? { type: "file" as const, mediaType: "image/png", data: text }
            : { type: "text" as const, text }
        )
      }
    if (role === "assistant")
      return {
        role,
        content: parts.map(({ kind, word: text }) =>
          kind === "call"
            ? { type: "tool-call" as const, id: text, name: "look", params: { text } }
            : { type: "text" as const, text }
        ),
        ...(content === "" ? { options: quoted } : {})
      }
    return {
      role,
      content: parts.map(({ isFailure, word: result }) => ({
        type: "tool-result" as const,
        id: result,
        name: "look",
        isFailure,
        result
      }))
    }
  })
)

/** What is new in each request. */
const anyRequests = Arbitrary.array(Arbitrary.array(anyMessage, { maxLength: 3 }), { maxLength: 12 })
const decode = Schema.decodeUnknownSync(Schema.Array(Prompt.Message))
const tools = [{ name: "look", inputSchema: { type: "object" } }]
const isNoFile = (_key: string, value: unknown): unknown =>
  typeof value === "object" && value !== null && "type" in value && value.type === "file" ? null : value

/** Everything that is made of messages, in the order in which a server makes it. */
const madeOf = (messages: ReadonlyArray<Message>) =>
  Effect.map(toPrompt(messages), (prompt) => ({
    prompt: [...prompt.content],
    scope: structuredClone(scopeOf(prompt, ["look"], {}, undefined)),
    openai: structuredClone(
      toAiSdkPrompt(prompt, {
        name: "p:m",
        joinsNeighbours: false,
        answersTools: false,
        pictures: "result",
        lateSystemMessages: true
      })
    ),
    others: structuredClone(
      toAiSdkPrompt(prompt, {
        name: "p:m",
        joinsNeighbours: false,
        answersTools: false,
        pictures: "result",
        lateSystemMessages: false
      })
    ),
    chars: [charsOf({ messages, tools }), charsOfList(prompt.content)]
  }))

describe("a request that grew from the one before", () => {
  it.effect.prop(
    "is equal to one that is made from its beginning",
    [anyRequests],
    ([requests]) =>
      Effect.gen(function* () {
        let messages: ReadonlyArray<Message> = []
        for (const added of requests) {
          messages = grow(messages, added)
          const made = yield* madeOf(messages)
          expect(made).toStrictEqual(yield* madeOf([...messages]))
          expect(made.prompt).toStrictEqual(decode(messages))
          expect(made.chars).toEqual([
            JSON.stringify(messages, isNoFile).length + JSON.stringify(tools).length,
            JSON.stringify(made.prompt, isNoFile).length
          ])
        }
      }),
    { arbitrary: { size: 12, runs: 200 } }
  )
})
