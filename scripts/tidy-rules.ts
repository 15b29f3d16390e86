/**
 * The walls of the house as rules: each reads source files and answers with complaints.
 *
 * Every rule is a pure function of paths and texts, so `tidy-rules.test.ts`
 * can feed each one a bad text and see it complain; `tidy.test.ts` feeds them
 * the whole checkout. What a parser judges better (`async`, `Date.now`, import
 * circles, the length of a function) is the linter's and stands in
 * `.oxlintrc.json`. The order of the stages stands in `staircase.ts`.
 */
import { functionLengths } from "./function-length.ts"
import type { Complaint, SourceFile } from "./source-text.ts"
import { codeOnly, commentsOnly, complainWhere, exportsOf, headerOf, withoutComments } from "./source-text.ts"
import { findClimbs } from "./staircase.ts"

/** A rule: its sentence, and how it finds what breaks it. */
export interface Rule {
  readonly sentence: string
  readonly find: (files: ReadonlyArray<SourceFile>) => ReadonlyArray<Complaint>
}

/** The longest a file may be. */
export const maxLines = 700

/** The most lines that a function may say itself. */
export const maxFunctionLines = 80

/** Where Effect begins: only these may speak to the runtime directly. */
export const entryPoints: ReadonlyArray<string> = ["packages/server/src/main.ts", "packages/cli/src/main.ts"]

/** Who may write the graph's tables, and which statement: the gateway's own files and the migrations any, the outbox one. */
export const graphWriters: ReadonlyArray<{ readonly folder: string; readonly statement: RegExp }> = [
  ...["creations", "entity-writes", "recording"].map((name) => ({
    folder: `packages/server/src/graph/${name}.ts`,
    statement: /[\s\S]/
  })),
  { folder: "packages/server/src/database/migrations", statement: /[\s\S]/ },
  { folder: "packages/server/src/outbox/", statement: /^update\s+kb\.graph_events$/i } // marks events dispatched
]

/** Who may open files without Effect's FileSystem, and why. */
export const rawFileReaders: ReadonlyArray<string> = [
  "packages/server/src/database/data-folder.ts", // flock needs a descriptor that stays open
  "packages/server/src/database/postgres-programs.ts" // PostgreSQL outlives a killed program and keeps its log's descriptor
]

/** Words that say nothing about what a thing is. */
export const emptyWords: ReadonlyArray<string> = [
  "Service",
  "Manager",
  "Helper",
  "Util",
  "Common",
  "Impl",
  "Data",
  "Info"
]

const isCode = (path: string): boolean => /\.(ts|tsx|mts|js|mjs)$/.test(path)
const isTest = (path: string): boolean => /\.test\.tsx?$/.test(path)
const isGenerated = (path: string): boolean => /\.gen\.[a-z]+$/.test(path)
const isShell = (path: string): boolean => path.endsWith(".sh") || path.startsWith(".ci/")
const isSource = (path: string): boolean =>
  (isCode(path) || isShell(path) || /\.(css|sql)$/.test(path)) &&
  !isGenerated(path) &&
  !path.startsWith("specs/")
/** Code that runs inside Effect: everything in a package's src but the entry points. */
const isInside = (path: string): boolean =>
  /^packages\/[^/]+\/src\//.test(path) && isCode(path) && !entryPoints.includes(path)
/** What checks the product from outside rather than being it. */
const isOutside = (path: string): boolean => isTest(path) || /^packages\/[^/]+\/testing\//.test(path)

const inEach =
  (applies: (path: string) => boolean, find: (file: SourceFile) => ReadonlyArray<Complaint>): Rule["find"] =>
  (files) =>
    files.filter((file) => applies(file.path)).flatMap(find)

const whole = (file: SourceFile, message: string): Complaint => ({ path: file.path, line: 1, message })

const findHeaderFaults = inEach(isSource, (file) => {
  const header = headerOf(file.path, file.text)
  if (header === undefined) return [whole(file, "opens without a header comment")]
  return /^\S+(?:\s+\S+){2,}[\s\S]*?[.!?:](?:\s|$)/.test(header)
    ? []
    : [whole(file, "has a header that is not a sentence")]
})

const findNameFaults = inEach(
  (path) => /^(packages|scripts|bench|examples)\//.test(path) && isSource(path),
  (file) => {
    const found: Array<Complaint> = []
    const parts = file.path.split("/").map((part) => part.replace(/\.[a-z0-9.]+$/i, ""))
    const strange = parts.find((part) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(part))
    if (strange !== undefined) found.push(whole(file, `"${strange}" is not in kebab-case`))
    if (parts.at(-1) === "index")
      found.push(whole(file, "is an index file: import the file that holds the thing"))
    for (const part of parts.slice(1)) {
      const last = part.split("-").at(-1) ?? ""
      if (isEmptyWord(last)) found.push(whole(file, `"${part}" says nothing about what is in it`))
    }
    for (const { name, line } of exportsOf(file.text)) {
      const last = name.split(/_|(?<=[a-z0-9])(?=[A-Z])/).at(-1) ?? ""
      if (isEmptyWord(last))
        found.push({
          path: file.path,
          line,
          message: `exports ${name}: "${last}" says nothing about what it is`
        })
    }
    return found
  }
)

const isEmptyWord = (word: string): boolean =>
  /^v[2-9]$/i.test(word) || emptyWords.some((empty) => [empty, `${empty}s`].includes(capital(word)))

const capital = (word: string): string => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()

const findLongFiles = inEach(isSource, (file) => {
  const lines = file.text.replace(/\n$/, "").split("\n").length
  return lines > maxLines
    ? [whole(file, `has ${lines} lines; at ${maxLines} it is two nouns: find the second`)]
    : []
})

const findLongFunctions = inEach(
  (path) => isCode(path) && !isOutside(path) && !isGenerated(path) && !/\/(stories|simulation)\//.test(path),
  (file) =>
    functionLengths(file.text)
      .filter(({ ownLines }) => ownLines > maxFunctionLines)
      .map(({ line, ownLines }) => ({
        path: file.path,
        line,
        message: `has a function of ${ownLines} lines without those inside it; ${maxFunctionLines} are enough`
      }))
)

/** A statement that writes one of the graph's tables, up to the table's name. */
const graphWrite =
  /\b(?:insert\s+into|update|delete\s+from|truncate(?:\s+table)?|merge\s+into|copy)\s+(?:only\s+)?(?:\$\{\s*sql\(\s*["'`])?"?(?:kb"?\s*\.\s*"?)?graph_(?:objects|object_versions|relationships|relationship_versions|events|purges)\b/gi

const findGraphWrites = inEach(
  (path) => path.startsWith("packages/") && (isCode(path) || path.endsWith(".sql")) && !isOutside(path),
  (file) =>
    complainWhere(
      file,
      withoutComments(file.text),
      graphWrite,
      (found) => `writes a graph table ("${found.replaceAll(/\s+/g, " ")}"); only the gateway in graph/ does`
    ).filter(({ line }) => !mayWrite(file, line))
)

const mayWrite = (file: SourceFile, line: number): boolean =>
  graphWriters.some(({ folder, statement }) => {
    if (!file.path.startsWith(folder)) return false
    const rest = withoutComments(file.text)
      .split("\n")
      .slice(line - 1)
      .join("\n")
    return statement.test(rest.match(graphWrite)?.[0] ?? "")
  })

const findRawRuntime = inEach(isInside, (file) => {
  const code = codeOnly(file.text)
  const said = withoutComments(file.text)
  return [
    ...complainWhere(
      file,
      code,
      /(?<![.\w])try\s*\{/g,
      "uses try; failures travel in Effect's error channel"
    ),
    ...complainWhere(file, code, /\bnew\s+Date\(\s*\)/g, "reads the wall clock; use Clock or DateTime"),
    ...complainWhere(file, code, /\bas\s+unknown\s+as\b/g, "casts through unknown; decode with a Schema"),
    ...(isTest(file.path) || rawFileReaders.includes(file.path)
      ? []
      : complainWhere(
          file,
          said,
          /["'](?:node:)?fs(?:\/promises)?["']/g,
          "imports node's file system; use Effect's FileSystem"
        ))
  ]
})

const findUnbounded = inEach(
  (path) => path.startsWith("packages/server/src/") && isInside(path) && !isTest(path),
  (file) => [
    ...complainWhere(
      file,
      codeOnly(file.text),
      /\b(?:Queue|PubSub|TxQueue)\.unbounded\b/g,
      (found) => `makes ${found}; every queue has a bound in limits.ts`
    ),
    ...complainWhere(
      file,
      withoutComments(file.text),
      /\bconcurrency:\s*["']unbounded["']/g,
      "runs without a bound; give concurrency a number from limits.ts"
    )
  ]
)

const findUnreasonedExceptions = inEach(isCode, (file) =>
  complainWhere(
    file,
    commentsOnly(file.text),
    /(?:\/\/|\/\*)\s*(?:(?:oxlint|eslint)-disable|@ts-(?:ignore|expect-error|nocheck)|oxfmt-ignore)(?!.*-- \w+ \w+).*/g,
    (found) => `silences a check without saying why after "--": ${found.trim()}`
  )
)

const findSleepers = inEach(
  (path) =>
    (isTest(path) || /^packages\/[^/]+\/stories\//.test(path)) &&
    isCode(path) &&
    !path.includes("/simulation/"),
  (file) => {
    const code = codeOnly(file.text)
    const message = (found: string): string =>
      `${found.replace(/\s*\($/, "")}: a test does not wait, it moves TestClock or watches for what it expects`
    const sleeps = complainWhere(
      file,
      code,
      /\b(?:setTimeout|setInterval|Bun\.sleep(?:Sync)?|Atomics\.wait)\s*\(/g,
      message
    )
    if (/\bTestClock\b/.test(code)) return sleeps
    return [...sleeps, ...complainWhere(file, code, /\bEffect\.(?:sleep|delay)\s*\(/g, message)]
  }
)

const findSkipped = inEach(
  (path) => isTest(path) || /^packages\/[^/]+\/(?:stories|simulation)\//.test(path),
  (file) =>
    complainWhere(
      file,
      codeOnly(file.text),
      /\b(?:(?:it|test|describe|suite)(?:\.\w+)*\.(?:skip|only|todo|fails|skipIf|runIf)|xit|xtest|xdescribe|fit|fdescribe)\b(?=\s*[.(])/g,
      (found) => `${found}: every test runs and must pass`
    )
)

/** The staircase keeps src from importing what lies outside it; this keeps code for tests from lying inside. */
const findTestCode = inEach(isInside, ({ path, text }) => {
  const name = /\/(?:[\w-]+-for-tests|(?:fake|fixture|mock|stub)s?(?:-[\w-]+)?)\.tsx?$/.exec(path)?.[0]
  return name === undefined || isTest(path)
    ? []
    : [whole({ path, text }, `"${name.slice(1)}" is for tests: put it into the package's testing folder`)]
})

const findForeignPlaces = inEach(
  (path) => /\.(ts|tsx|mjs|js|css|sql|md|json|jsonc|ya?ml|sh|html)$/.test(path),
  (file) =>
    complainWhere(
      file,
      file.text,
      /\.\.\/shared\/|\bDESIGN\b|(?<![\w.@-])\/(?:home|root|Users|work)\/\w+/g,
      (found) => `names "${found}", which a reader of this repository does not have`
    )
)

/** Every rule by name; `tidy-rules.test.ts` proves each. */
export const rules = {
  staircase: {
    sentence: "a file imports from its own module and the public files of modules further down the stairs",
    find: findClimbs
  },
  header: { sentence: "a file opens with a comment that is at least one sentence", find: findHeaderFaults },
  names: {
    sentence: "names are in kebab-case and say what the thing is; there is no index file",
    find: findNameFaults
  },
  length: { sentence: `a file has at most ${maxLines} lines`, find: findLongFiles },
  functions: {
    sentence: `a function says at most ${maxFunctionLines} lines, not counting the functions inside it`,
    find: findLongFunctions
  },
  graphWrites: { sentence: "only the graph's gateway writes the graph's tables", find: findGraphWrites },
  rawRuntime: {
    sentence: "inside the house there is no try, wall clock, blind cast or node:fs",
    find: findRawRuntime
  },
  unbounded: { sentence: "every queue and every fan-out of the server has a bound", find: findUnbounded },
  exceptions: { sentence: "whoever silences a check says why", find: findUnreasonedExceptions },
  sleepers: { sentence: "nothing sleeps in a test", find: findSleepers },
  testCode: { sentence: "fakes, fixtures and other code for tests lie outside src", find: findTestCode },
  skipped: { sentence: "no test is skipped, singled out or left for later", find: findSkipped },
  standsAlone: { sentence: "the project names no place outside itself", find: findForeignPlaces }
} as const satisfies Record<string, Rule>
