/**
 * Agent definitions in files: YAML or JSON, one or more in a file, a file or a folder of them.
 *
 * Everything is read and judged before anything is sent, so a mistake in the
 * last file does not leave the first ones applied. An unknown field is a
 * mistake: a misspelt safety setting must not be silently without effect.
 */
import { faultText } from "@tropism/client/failure-sentence"
import { AgentInput, defineAgent, findDefinitionFault } from "@tropism/domain/agent"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Effect, FileSystem, Path, Result, Schema } from "effect"
import { type Document, parseAllDocuments } from "yaml"
import { type Failure, failure } from "./failure.ts"
import { limits } from "./limits.ts"

export interface AgentFile {
  readonly file: string
  /** The file, and which of its documents when it has several. */
  readonly place: string
  readonly input: AgentInput
}

/** Reads every definition of a file, or of the files of a folder that end in .yaml, .yml or .json. */
export const readAgentFiles = (
  location: string
): Effect.Effect<ReadonlyArray<AgentFile>, Failure, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const files = yield* listFiles(location)
    const definitions = (yield* Effect.forEach(files, readDefinitions)).flat()
    if (definitions.length === 0) return yield* failure(`${location} defines no agent.`)
    const names = new Map<string, string>()
    for (const { place, input } of definitions) {
      const earlier = names.get(input.name)
      if (earlier !== undefined)
        return yield* failure(`The agent "${input.name}" is defined twice: in ${earlier} and in ${place}.`)
      names.set(input.name, place)
    }
    return definitions
  })

const listFiles = (location: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const facts = yield* files
      .stat(location)
      .pipe(
        Effect.mapError(() =>
          failure(`File or folder not found: ${location}. Give the path of agent definitions in YAML.`)
        )
      )
    if (facts.type !== "Directory") return [location]
    const entries = yield* files
      .readDirectory(location)
      .pipe(
        Effect.mapError(() =>
          failure(`The folder ${location} is not readable by this user. Check its permissions.`)
        )
      )
    const found = entries.filter((entry) => /\.(ya?ml|json)$/.test(entry)).toSorted()
    if (found.length === 0)
      return yield* failure(`The folder ${location} contains no .yaml, .yml or .json files.`)
    if (found.length > limits.agentFiles)
      return yield* failure(
        `The folder ${location} has ${found.length} agent files; the maximum is ${limits.agentFiles}.`
      )
    return found.map((entry) => path.join(location, entry))
  })

const readDefinitions = (file: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const text = yield* files
      .readFileString(file)
      .pipe(
        Effect.mapError(() =>
          failure(`The file ${file} cannot be read. Check that it exists and its permissions.`)
        )
      )
    if (text.length > limits.agentFileBytes)
      return yield* failure(`The file ${file} is too large for agent definitions.`)
    return yield* Effect.fromResult(parseDefinitions(file, text))
  })

const decodeInput = Schema.decodeUnknownResult(AgentInput, { onExcessProperty: "error", errors: "all" })

/** Parses the definitions of one file; the failure says in which file, at which line or field. */
export const parseDefinitions = (
  file: string,
  text: string
): Result.Result<ReadonlyArray<AgentFile>, Failure> => {
  const documents = parseAllDocuments(text, { prettyErrors: true })
  const definitions: Array<AgentFile> = []
  for (const [index, document] of (Array.isArray(documents) ? documents : []).entries()) {
    const [error] = document.errors
    if (error)
      return Result.fail(
        failure(`${file} is not valid YAML: ${error.message.split("\n", 1)[0]?.replace(/:$/, "")}.`)
      )
    const place = documents.length > 1 ? `${file}, document ${index + 1}` : file
    const value = valueOf(document)
    if (Result.isFailure(value)) return Result.fail(failure(`${place} ${value.failure}.`))
    if (value.success === null || value.success === undefined) continue
    const decoded = decodeInput(value.success)
    const faults = Result.isFailure(decoded)
      ? schemaFaults(decoded.failure.issue)
      : [findDefinitionFault(defineAgent(decoded.success)) ?? []].flat()
    if (faults.length > 0)
      return Result.fail(failure(`${place} does not define an agent: ${faults.map(faultText).join("; ")}.`))
    if (Result.isSuccess(decoded)) definitions.push({ file, place, input: decoded.success })
  }
  return Result.succeed(definitions)
}

/** What a document says. A file of a few lines can stand for gigabytes by aliases of aliases, so these are counted. */
const valueOf = (document: Document): Result.Result<unknown, string> =>
  Result.try({
    try: (): unknown => document.toJS({ maxAliasCount: 100 }),
    catch: () => "uses too many aliases (*name): write the repeated parts out"
  })
