/**
 * `tropism contexts define-tool` and `answer-tool`: a tool that a client answers, and an answer to one of its calls.
 */
import { Effect, FileSystem, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { inProject } from "../access.ts"
import { exitCodes } from "../exit-codes.ts"
import { failure } from "../failure.ts"
import { fileFlag } from "../file-word.ts"
import { printOr } from "../print-records.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { contextArgument } from "./context-log.ts"

const decodeSchema = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Json))
)

const readSchema = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const text = yield* Effect.option(files.readFileString(file))
  if (Option.isNone(text))
    return yield* failure(`${file} cannot be read: name a file with a JSON Schema.`, exitCodes.usage)
  const schema = decodeSchema(text.value)
  return Option.isSome(schema)
    ? schema.value
    : yield* failure(`${file} is not a JSON object: expected a JSON Schema of type object.`, exitCodes.usage)
})

export const defineToolCommand = Command.make(
  "define-tool",
  {
    context: contextArgument,
    name: Argument.String("name").pipe(Argument.withDescription("The tool's name for the model")),
    schema: fileFlag("schema").pipe(
      Flag.withMetavar("<file>"),
      Flag.withDescription("Its input: a JSON Schema of type object (default: remove the tool)"),
      Flag.optional
    ),
    description: Flag.String("description").pipe(
      Flag.withMetavar("<text>"),
      Flag.withDescription("The tool's description for the model"),
      Flag.optional
    ),
    timeoutMs: Flag.Int("timeout-ms").pipe(
      Flag.withMetavar("<ms>"),
      Flag.withDescription("Timeout of a call in milliseconds (default: 300000)"),
      Flag.optional
    )
  },
  ({ context: name, description, name: tool, schema, timeoutMs }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const inputSchema = Option.isSome(schema) ? yield* readSchema(schema.value) : undefined
      const payload = {
        type: "DefineToolEvent",
        name: tool,
        ...(inputSchema === undefined ? { tool: null } : { inputSchema }),
        ...(Option.isSome(description) ? { description: description.value } : {}),
        ...(Option.isSome(timeoutMs) ? { timeoutMs: timeoutMs.value } : {})
      } as const
      yield* inProject((access) =>
        Effect.gen(function* () {
          yield* access.client.contexts.addEvent({ params: { ...access.params, name }, payload })
          const done =
            inputSchema === undefined
              ? `${printable(tool)} is removed from ${name}.`
              : `${printable(tool)} is defined in ${name}. Answer calls with: tropism contexts answer-tool ${name}`
          yield* printOr(payload, screen.print(done))
        })
      )
    })
).pipe(
  Command.withDescription("Define a client tool, or remove it"),
  Command.withExamples([
    {
      command: "tropism contexts define-tool talk pick_colour --schema pick-colour.json",
      description: "Offer a tool that your program answers"
    }
  ])
)

export const answerToolCommand = Command.make(
  "answer-tool",
  {
    context: contextArgument,
    callId: Argument.String("call-id").pipe(
      Argument.withDescription("The callId of the ToolCallStartedEvent in the log")
    ),
    result: Flag.String("result").pipe(
      Flag.withMetavar("<json>"),
      Flag.withDescription("The result of the call"),
      Flag.withSchema(Schema.fromJsonString(Schema.Json)),
      Flag.optional
    ),
    error: Flag.String("error").pipe(
      Flag.withMetavar("<text>"),
      Flag.withDescription("The error message for the model, if there is no result"),
      Flag.optional
    ),
    untrusted: Flag.Boolean("untrusted").pipe(
      Flag.withDescription(
        "Mark the result as untrusted: the agent can only suggest in this context from then on"
      ),
      Flag.withDefault(false)
    )
  },
  ({ callId, context: name, error, result, untrusted }) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      if (Option.isSome(result) === Option.isSome(error))
        return yield* failure("Give either --result or --error.", exitCodes.usage)
      const payload = {
        type: "ToolResultEvent",
        callId,
        ...(Option.isSome(result) ? { result: result.value } : {}),
        ...(Option.isSome(error) ? { error: error.value } : {}),
        ...(untrusted ? { untrusted } : {})
      } as const
      yield* inProject((access) =>
        Effect.andThen(
          access.client.contexts.addEvent({ params: { ...access.params, name }, payload }),
          printOr(
            payload,
            screen.print(`${printable(callId)} has its ${Option.isSome(result) ? "result" : "error"}.`)
          )
        )
      )
    })
).pipe(
  Command.withDescription("Answer a client tool call"),
  Command.withExamples([
    {
      command: 'tropism contexts answer-tool talk call_1 --result \'{"colour":"green"}\'',
      description: "Send the result of a call"
    }
  ])
)
