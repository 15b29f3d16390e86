/**
 * Loads the scripts that ship with the server: one YAML file per demo agent, and TodoAssistant's command parser.
 *
 * They replace a model where none is available, each only for the agent with its name. An invalid file is a build defect and stops the
 * start. Scripts of other agents are in their definitions.
 */
import { Script } from "@tropism/domain/script"
import { todoAssistantName } from "@tropism/domain/todo-assistant"
import { Data, Effect, FileSystem, Path, Result, Schema } from "effect"
import { parse } from "yaml"
import { type CompiledScript, compileScript } from "./script.ts"
import { todoCommands } from "./todo-commands.ts"

/** Compiled scripts by agent name. */
export type BuiltInScripts = ReadonlyMap<string, CompiledScript>

/** The agents with a script; known without reading the folder, so that an agent can be validated when it is saved. */
export const builtInScriptNames: ReadonlyArray<string> = [
  todoAssistantName,
  "daily-digest",
  "install-script-watch",
  "licence-review"
]

class ScriptFileFault extends Data.TaggedError("ScriptFileFault")<{
  readonly file: string
  readonly message: string
}> {}

const decodeScript = Schema.decodeUnknownEffect(Script)

/** Reads and compiles every file of the `scripts` folder beside this module. */
export const loadBuiltInScripts: Effect.Effect<BuiltInScripts, never, FileSystem.FileSystem | Path.Path> =
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* path.fromFileUrl(new URL("./scripts", import.meta.url))
    const files = (yield* fs.readDirectory(folder)).filter((file) => file.endsWith(".yaml"))
    const scripts = yield* Effect.forEach(
      files,
      Effect.fnUntraced(function* (file) {
        const text = yield* fs.readFileString(path.join(folder, file))
        const yaml: unknown = yield* Effect.try({
          try: () => parse(text),
          catch: (error) => new ScriptFileFault({ file, message: String(error) })
        })
        const script = compileScript(yield* decodeScript(yaml))
        if (Result.isFailure(script)) return yield* new ScriptFileFault({ file, message: script.failure })
        return [path.basename(file, ".yaml"), script.success] as const
      })
    )
    return new Map([...scripts, [todoAssistantName, todoCommands] as const])
  }).pipe(Effect.orDie)
