/**
 * Tools of the MCP conformance suite: those that answer in every way in which a tool can, and those that ask their client first.
 *
 * The suite calls them by these names and expects these words. A tool that asks
 * returns what it needs; in a session of 2025-11-25 the SDK asks the client for
 * it while the call waits. State between two rounds is sealed and kept by the client.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  type GetPromptResult,
  type InputRequest,
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  type ServerContext,
  type Tool
} from "@modelcontextprotocol/server"
import { Effect, Predicate, type Schema } from "effect"
import { badParams } from "../src/mcp/server.ts"
import type { CapabilityPrompt, CapabilityTool } from "../src/mcp/capability.ts"

/** A red pixel, and a moment of silence. */
export const pixelPng =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
const silentWav = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA"

const image = { type: "image", data: pixelPng, mimeType: "image/png" } as const
const text = (words: string) => ({ type: "text", text: words }) as const
const embedded = (uri: string, mimeType: string, words: string) =>
  ({ type: "resource", resource: { uri, mimeType, text: words } }) as const

/** A tool without arguments. */
export const plainTool = (
  name: string,
  description: string,
  call: CapabilityTool["call"]
): CapabilityTool => ({
  listed: { name, description, inputSchema: { type: "object" } },
  call
})

export const answering = (...content: CallToolResult["content"]) => Effect.succeed({ content })

const always = (name: string, description: string, ...content: CallToolResult["content"]): CapabilityTool =>
  plainTool(name, description, () => answering(...content))

/** Sends something while a call goes on. */
const saying = (send: () => Promise<unknown>) => Effect.promise(send)

const withLogging: CapabilityTool["call"] = (_args, { mcpReq }) =>
  Effect.gen(function* () {
    for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"])
      yield* saying(() => mcpReq.log("info", words))
    return { content: [text("It was logged.")] }
  })

const withProgress: CapabilityTool["call"] = (_args, { mcpReq }) =>
  Effect.gen(function* () {
    const progressToken = mcpReq._meta?.progressToken
    if (progressToken !== undefined)
      for (const progress of [0, 50, 100])
        yield* saying(() =>
          mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken, progress, total: 100, message: `${progress} of 100` }
          })
        )
    return { content: [text(String(progressToken ?? "done"))] }
  })

/** The capabilities that a client declares with a request of 2026-07-28. */
const declaredBy = ({ mcpReq: { envelope } }: ServerContext): object =>
  Predicate.hasProperty(envelope, CLIENT_CAPABILITIES_META_KEY) &&
  Predicate.isObject(envelope[CLIENT_CAPABILITIES_META_KEY])
    ? envelope[CLIENT_CAPABILITIES_META_KEY]
    : {}

const needingSampling: CapabilityTool["call"] = (_args, context) =>
  "sampling" in declaredBy(context)
    ? answering(text("The client can sample."))
    : Effect.fail(new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } }))

/** Keywords of JSON Schema 2020-12 that must reach a client as they are. */
const wideSchema: Tool["inputSchema"] = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } }
    }
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" }
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false
}

/** The tools; some of them say that a list has changed, though none ever does. */
export const fixtureTools = (
  changed: (list: "tools" | "prompts") => Effect.Effect<unknown>
): ReadonlyArray<CapabilityTool> => [
  always("test_simple_text", "Answers text", text("This is a simple text response for testing.")),
  always("test_image_content", "Answers an image", image),
  always("test_audio_content", "Answers a sound", { type: "audio", data: silentWav, mimeType: "audio/wav" }),
  always(
    "test_embedded_resource",
    "Answers a resource",
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
  ),
  always(
    "test_multiple_content_types",
    "Answers text, an image and a resource",
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
  ),
  plainTool("test_error_handling", "Fails", () =>
    Effect.succeed({
      isError: true,
      content: [text("This tool intentionally returns an error for testing")]
    })
  ),
  plainTool("test_tool_with_logging", "Logs while it works", withLogging),
  plainTool("test_logging_tool", "Logs while it works", withLogging),
  plainTool("test_tool_with_progress", "Tells how far it is", withProgress),
  plainTool("test_missing_capability", "Needs a client that can sample", needingSampling),
  {
    listed: {
      name: "json_schema_2020_12_tool",
      description: "Tool with JSON Schema 2020-12 features",
      inputSchema: wideSchema
    },
    call: () => answering(text("ok"))
  },
  plainTool("test_trigger_tool_change", "Says that the tools have changed", () =>
    Effect.andThen(changed("tools"), answering(text("It was said.")))
  ),
  plainTool("test_trigger_prompt_change", "Says that the prompts have changed", () =>
    Effect.andThen(changed("prompts"), answering(text("It was said.")))
  ),
  ...questions
]

type Asked = Readonly<Record<string, InputRequest>>

const asking = (inputRequests: Asked, requestState?: string): InputRequiredResult => ({
  resultType: "input_required",
  inputRequests,
  ...(requestState === undefined ? {} : { requestState })
})

/** A form with one text or yes-or-no. */
export const form = (
  message: string,
  properties: Record<string, Schema.Json>,
  required: ReadonlyArray<string> = Object.keys(properties)
): InputRequest =>
  ({
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: { type: "object", properties, required } }
  }) as InputRequest

const sampling = (words: string, maxTokens: number): InputRequest => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: words } }], maxTokens }
})

const roots: InputRequest = { method: "roots/list", params: {} }

/** What the client gave under a name, if it is what such a question is answered with. */
export const givenTo = (
  { mcpReq }: ServerContext,
  name: string
): Readonly<Record<string, unknown>> | undefined => {
  const given: unknown = mcpReq.inputResponses?.[name]
  return Predicate.isObject(given) && ("action" in given || "content" in given || "roots" in given)
    ? (given as Record<string, unknown>)
    : undefined
}

const told = (...given: ReadonlyArray<unknown>) =>
  answering({ type: "text", text: given.map((one) => JSON.stringify(one)).join(" ") })

/** Asks until everything was answered, then tells what the answers were. */
const untilAnswered =
  (asked: Asked): CapabilityTool["call"] =>
  (_args, context) => {
    const given = Object.keys(asked).map((name) => givenTo(context, name))
    return given.every((one) => one !== undefined) ? told(...given) : Effect.succeed(asking(asked))
  }

export const nameForm = form("What is your name?", { name: { type: "string" } })

const askName: CapabilityTool["call"] = (_args, context) => {
  const content = givenTo(context, "user_name")?.["content"]
  return Predicate.isObject(content) && "name" in content && typeof content.name === "string"
    ? answering({ type: "text", text: `Hello, ${content.name}!` })
    : Effect.succeed(asking({ user_name: nameForm }))
}

/** Seals what a client keeps for us between two rounds, for as long as this program runs. */
const codec = createRequestStateCodec<string>({ key: crypto.getRandomValues(new Uint8Array(32)) })

/** What was sealed in an earlier round; undefined in the first. */
const stateOf = (context: ServerContext) => {
  const state: unknown = context.mcpReq.requestState()
  return typeof state === "string"
    ? Effect.tryPromise({
        try: () => codec.verify(state, context),
        catch: () => badParams("Invalid or expired requestState")
      })
    : Effect.succeed(undefined)
}

const sealed = (state: string) => Effect.promise(() => codec.mint(state))

/** Asks in rounds, each remembered by the state that the client brings back. */
const inRounds =
  (rounds: ReadonlyArray<Asked>, last: string): CapabilityTool["call"] =>
  (_args, context) =>
    Effect.gen(function* () {
      const state = yield* stateOf(context)
      const done = state === undefined ? 0 : Number(state)
      const answered = done === 0 ? {} : rounds[done - 1]
      const isAnswered = Object.keys(answered ?? {}).every((name) => givenTo(context, name) !== undefined)
      const next = isAnswered ? done : done - 1
      const asked = rounds[next]
      return asked
        ? asking(asked, yield* sealed(String(next + 1)))
        : { content: [{ type: "text" as const, text: last }] }
    })

const confirm = form("Please confirm", { ok: { type: "boolean" } })

const wherePossible: CapabilityTool["call"] = (_args, context) => {
  const declared = declaredBy(context)
  const asked: Asked = {
    ...("elicitation" in declared ? { user_name: nameForm } : {}),
    ...("sampling" in declared ? { greeting: sampling("Generate a greeting", 50) } : {}),
    ...("roots" in declared ? { client_roots: roots } : {})
  }
  return Object.keys(asked).length === 0 ? told("Nothing to ask") : untilAnswered(asked)({}, context)
}

const options = ["option1", "option2", "option3"]
const titled = ["First Option", "Second Option", "Third Option"].map((title, index) => ({
  const: `value${index + 1}`,
  title
}))

const enums = {
  untitledSingle: { type: "string", enum: options },
  titledSingle: { type: "string", oneOf: titled },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"]
  },
  untitledMulti: { type: "array", items: { type: "string", enum: options } },
  titledMulti: { type: "array", items: { anyOf: titled } }
}

const defaults = {
  name: { type: "string", default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true }
}

const question = (name: string, argument: string, ask: (words: string) => InputRequest): CapabilityTool => ({
  listed: {
    name,
    description: "Asks its client what it was told to ask",
    inputSchema: { type: "object", properties: { [argument]: { type: "string" } }, required: [argument] }
  },
  call: (args, context) => untilAnswered({ answer: ask(String(args[argument] ?? "")) })(args, context)
})

const prefix = "test_input_required_result"
const input = (name: string, call: CapabilityTool["call"]) =>
  plainTool(`${prefix}_${name}`, "Asks its client before it answers", call)

const questions: ReadonlyArray<CapabilityTool> = [
  question("test_sampling", "prompt", (words) => sampling(words, 100)),
  question("test_elicitation", "message", (words) =>
    form(words, {
      username: { type: "string", description: "User's response" },
      email: { type: "string", description: "User's email address" }
    })
  ),
  plainTool("test_streaming_elicitation", "Asks for a name", askName),
  plainTool(
    "test_elicitation_sep1034_defaults",
    "Asks with values to begin with",
    untilAnswered({ answer: form("Please review and update the form fields with defaults", defaults, []) })
  ),
  plainTool(
    "test_elicitation_sep1330_enums",
    "Asks for choices of every kind",
    untilAnswered({ answer: form("Please select options from the enum fields", enums, []) })
  ),
  input("elicitation", askName),
  input("sampling", untilAnswered({ capital_question: sampling("What is the capital of France?", 100) })),
  input("list_roots", untilAnswered({ client_roots: roots })),
  input("request_state", inRounds([{ confirm }], "state-ok")),
  input("tampered_state", inRounds([{ confirm }], "state-ok")),
  input(
    "multiple_inputs",
    inRounds(
      [{ user_name: nameForm, greeting: sampling("Generate a greeting", 50), client_roots: roots }],
      "All was answered."
    )
  ),
  input(
    "multi_round",
    inRounds(
      [
        { step1: form("Step 1: What is your name?", { name: { type: "string" } }) },
        { step2: form("Step 2: What is your favorite color?", { color: { type: "string" } }) }
      ],
      "Both steps were answered."
    )
  ),
  input("capabilities", wherePossible)
]

export const fixtureAskingPrompt: CapabilityPrompt = {
  listed: { name: `${prefix}_prompt`, description: "Asks its client before it answers" },
  get: (_args, context) => {
    const content = givenTo(context, "user_context")?.["content"]
    const answered: GetPromptResult = {
      messages: [
        { role: "user", content: { type: "text", text: `With this context: ${JSON.stringify(content)}` } }
      ]
    }
    return Effect.succeed(
      content === undefined
        ? asking({
            user_context: form("What context should the prompt use?", { context: { type: "string" } })
          })
        : answered
    )
  }
}
