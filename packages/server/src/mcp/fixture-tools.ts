/**
 * Tools that do nothing but answer in every way in which a tool can.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * The official conformance suite calls them by these names and expects these
 * words. They stand at a door of their own and only with `--mcp-fixtures`.
 */
import {
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  MissingRequiredClientCapabilityError,
  type ServerContext,
  type Tool
} from "@modelcontextprotocol/server"
import { Effect, Predicate } from "effect"
import type { PartTool } from "./part.ts"

/** A red pixel, and a moment of silence. */
export const pixelPng =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
const silentWav = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA"

const image = { type: "image", data: pixelPng, mimeType: "image/png" } as const
const text = (words: string) => ({ type: "text", text: words }) as const
const embedded = (uri: string, mimeType: string, words: string) =>
  ({ type: "resource", resource: { uri, mimeType, text: words } }) as const

/** A tool without arguments. */
export const plainTool = (name: string, description: string, call: PartTool["call"]): PartTool => ({
  listed: { name, description, inputSchema: { type: "object" } },
  call
})

export const answering = (...content: CallToolResult["content"]) => Effect.succeed({ content })

const always = (name: string, description: string, ...content: CallToolResult["content"]): PartTool =>
  plainTool(name, description, () => answering(...content))

/** Sends something while a call goes on. */
const saying = (send: () => Promise<unknown>) => Effect.promise(send)

const withLogging: PartTool["call"] = (_args, { mcpReq }) =>
  Effect.gen(function* () {
    for (const words of ["Tool execution started", "Tool processing data", "Tool execution completed"])
      yield* saying(() => mcpReq.log("info", words))
    return { content: [text("It was logged.")] }
  })

const withProgress: PartTool["call"] = (_args, { mcpReq }) =>
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
export const declaredBy = ({ mcpReq: { envelope } }: ServerContext): object =>
  Predicate.hasProperty(envelope, CLIENT_CAPABILITIES_META_KEY) &&
  Predicate.isObject(envelope[CLIENT_CAPABILITIES_META_KEY])
    ? envelope[CLIENT_CAPABILITIES_META_KEY]
    : {}

const needingSampling: PartTool["call"] = (_args, context) =>
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
): ReadonlyArray<PartTool> => [
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
  )
]
