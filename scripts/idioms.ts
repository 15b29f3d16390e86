/**
 * The idioms that the specifications ask of the code, as rules in the manner of `tidy-rules.ts`.
 *
 * Each rule answers what breaks it and how many places it looked at: one that
 * found nothing to judge would hold for any code. Effect 3's names have their
 * successors in record 0003; a rule asks for those.
 */
import { type Complaint, codeOnly, lineAt, type SourceFile, withoutComments } from "./source-text.ts"

/** What a rule saw. */
export interface Look {
  readonly complaints: ReadonlyArray<Complaint>
  /** The places that it judged. */
  readonly judged: number
}

type Idiom = (files: ReadonlyArray<SourceFile>) => Look

const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path)

/** What runs under Effect: the words, the contract and the machine. */
const isHouse = (path: string): boolean =>
  /^packages\/(?:domain|api|client|server|cli)\/src\/.+\.ts$/.test(path) && !isTest(path)

/** Judges each match of a form in the files that a rule is about. */
const eachMatch =
  (
    isMeant: (path: string) => boolean,
    form: RegExp,
    fault: (match: RegExpMatchArray, path: string) => string | undefined,
    textOf: (text: string) => string = withoutComments
  ): Idiom =>
  (files) => {
    const found = files
      .filter(({ path }) => isMeant(path))
      .flatMap(({ path, text }) =>
        [...textOf(text).matchAll(form)].map((match) => ({
          path,
          line: lineAt(text, match.index),
          message: fault(match, path)
        }))
      )
    return {
      judged: found.length,
      complaints: found.flatMap(({ message, ...place }) =>
        message === undefined ? [] : [{ ...place, message }]
      )
    }
  }

/** The words stand by themselves: no rule of the domain does anything or asks for the time. */
export const pureWords: Idiom = (files) => {
  const words = files.filter(({ path }) => /^packages\/domain\/src\/.+\.ts$/.test(path) && !isTest(path))
  const { complaints } = eachMatch(
    ({ length }) => length > 0,
    /\b(?:Effect|Clock|Random|Layer|Stream|Fiber)\.\w+|\byield\*|\bnew Date\(\)/g,
    ([found]) => `has ${found}: what the domain says is a pure function`,
    codeOnly
  )(words)
  return { judged: words.length, complaints }
}

/** A service is a class with a contract, named by where it stands. */
export const contracts: Idiom = eachMatch(
  isHouse,
  /(?:class (\w+) extends )?\b(?:Context\.(?:Service|Tag|GenericTag)|Effect\.(?:Service|Tag))\s*<[\s\S]*?>\(\)\(\s*"([^"]*)"|\b(?:Context\.(?:Tag|GenericTag)|Effect\.(?:Service|Tag))\b/g,
  ([found, name = "", key = ""], path) => {
    if (!found.includes("Context.Service")) return "makes a service otherwise than by Context.Service"
    const [, folder = ""] = path.split("/")
    const house = folder === "cli" ? "tropism" : `@tropism/${folder}`
    return key.startsWith(`${house}/`) && key.endsWith(`/${name}`) && name !== ""
      ? undefined
      : `names a service "${key}" where "${house}/…/${name}" is meant`
  }
)

/** An `Effect.fn` has a name, which is its span's; what runs too often for one is untraced and says so. */
export const spans: Idiom = eachMatch(
  (path) => path.startsWith("packages/server/src/") && !isTest(path),
  /\bEffect\.fn\b\s*(?:<[^>(]*>)?\(\s*(?:"([^"]*)")?/g,
  ([, name]) =>
    name !== undefined && /^\S+$/.test(name) ? undefined : "has no name: Effect.fn takes the span's first"
)

/** An event of a context is a schema class of its own name with the base fields; a newer version's is the exception. */
export const events: Idiom = eachMatch(
  (path) => /^packages\/domain\/src\/[\w-]*event[\w-]*\.ts$/.test(path) && !isTest(path),
  /\bclass (\w+Event) extends ([\s\S]*?)\{\s*([\s\S]*?)\n\}/g,
  ([, name = "", form = "", fields = ""]) =>
    name === "UnknownEvent" ||
    (/^Schema\.(?:Tagged)?Class</.test(form) &&
      /\.\.\.base\b/.test(fields) &&
      fields.includes(`Schema.tag("${name}")`))
      ? undefined
      : `${name} is no Schema class with its tag and the base fields`
)

/** Errors that no caller acts on: they cross a callback of a foreign program, or bring along what is no value. */
const notForCallers: ReadonlyArray<string> = [
  "ClosedAddress", // told to the caller of a node socket
  "NeverSent", // thrown inside the official MCP client
  "GuardFlagged", // brings the statements with which its run ends
  // Thrown to programs that know nothing of Effect, by their client.
  "TropismProblem",
  "TropismUnreachable",
  "TropismUnreadable"
]

/** An error that leaves its file is a schema that carries what a caller acts on. */
export const errors: Idiom = eachMatch(
  (path) => isHouse(path),
  /\b(export )?class (\w+) extends ((?:Data\.TaggedError|Schema\.TaggedError\w*|HttpApiError\.\w+|Error)\b)/g,
  ([, exported, name = "", form = ""]) =>
    /^(?:Schema|HttpApiError)\./.test(form) || exported === undefined || notForCallers.includes(name)
      ? undefined
      : `${name} extends ${form}: an error that leaves its file is a Schema.TaggedError`
)

/** Whoever tries again says by a Schedule, or by a number of times, how. */
export const retries: Idiom = eachMatch(
  isHouse,
  /\bEffect\.retry\(\s*(?:\{[\s\S]*?\}|[^)]*)\)|\bclass RetryConfig\b/g,
  ([found]) =>
    /\bschedule\b|\btimes\b|Schedule\.|[Ss]chedule|backOff|retrying/.test(found)
      ? undefined
      : `tries again by itself ("${found.slice(0, 40)}"); a Schedule says how often`
)

/** The names of Effect 3 that version 4 has no more: a queue is a mailbox, a PubSub or the log its fan-out. */
export const mailboxes: Idiom = eachMatch(
  isHouse,
  /\bMailbox\.\w+|\bbroadcastDynamic\b|\b(?:Queue|PubSub)\.(?:bounded|sliding|dropping|unbounded)\b|\bStream\.(?:fromQueue|fromPubSub|broadcast)\b/g,
  ([found]) =>
    /^(?:Mailbox|broadcastDynamic)|unbounded$/.test(found)
      ? `has ${found}: a mailbox is a bounded Queue, and listeners read the log`
      : undefined
)

/** What is logged has a level and fields; nobody prints. */
export const logging: Idiom = eachMatch(
  (path) => /^packages\/(?:domain|api|server)\/src\//.test(path) && !isTest(path),
  /\bEffect\.log\w*|\bconsole\.\w+|\bprocess\.std(?:out|err)\b/g,
  ([found]) =>
    found.startsWith("Effect.") ? undefined : `prints with ${found}: what is logged is logged by Effect`,
  codeOnly
)

/** One folder knows providers; all others ask a LanguageModel, by way of it. */
export const models: Idiom = eachMatch(
  isHouse,
  /\bfrom\s+"(@ai-sdk\/[\w-]+|ai|openai|@anthropic-ai\/[\w-]+|effect\/ai)"/g,
  ([, from = ""], path) =>
    path.startsWith("packages/server/src/models/") || from === "effect/ai"
      ? undefined
      : `imports ${from}: models are asked through the LanguageModel that model/ gives`
)

/** A test stands beside what it tests and is called so. */
export const tests: Idiom = (files) => {
  const found = files.filter(({ path }) => /\.(?:test|spec)\.\w+$|\/(?:__tests__|tests?)\//.test(path))
  return {
    judged: found.length,
    complaints: found.flatMap(({ path, text }) => {
      const isBeside =
        /^packages\/[\w-]+\/(?:stories|simulation|testing)\//.test(path) || /\bfrom\s+"\.{1,2}\//.test(text)
      return /\/[\w.-]+\.test\.tsx?$/.test(path) && isBeside
        ? []
        : [{ path, line: 1, message: "is a test that does not stand as name.test.ts beside what it imports" }]
    })
  }
}
