/**
 * Finds which lines of the specifications are shown, settled or still to come.
 *
 * The checklist `specs/requirements.md` gives every line an id. An id is shown
 * when the title of a test names it, settled when the page of decisions says
 * that a document answers it, and it waits when `specs/later.md` lists it.
 * Every id must be one of the three, and what waits is neither of the others.
 * Pure: the files are read by `coverage.test.ts`.
 */
import type { SourceFile } from "./source-text.ts"
import { withoutComments } from "./source-text.ts"

/** What `judge` found wrong; all lists are empty when all is well. */
export interface Verdict {
  /** Ids that no test names, no decision settles and no list promises. */
  readonly forgotten: ReadonlyArray<string>
  /** Ids that `specs/later.md` still promises although a test shows them. */
  readonly alreadyShown: ReadonlyArray<string>
  /** Ids that `specs/later.md` lists twice. */
  readonly listedTwice: ReadonlyArray<string>
  /** Ids that the checklist does not know, with the place that names them. */
  readonly unknown: ReadonlyArray<string>
}

/** The ids of the checklist: each line of it begins with one. */
export const idsOfChecklist = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^- (S\d{3}-[A-Z]\d{2}|P3-MCP-\d{2})\b/gm)].map((match) => match[1] ?? "")

/**
 * Every id that a text names, ranges spelled out.
 *
 * **Details** `S000-R07…R09`, `S000-R07 … S000-R09`, `S000-R07, R08 and R09`
 * and `P3-MCP-01…03` are understood; an en dash or `..` does for the ellipsis.
 */
export const idsIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(idChain)].flatMap(([chain]) => idsOfChain(chain))

/** An id and what is joined to it; only `P3-MCP`, which has no letters, may go on with a bare number. */
const idChain =
  /S\d{3}-[A-Z]\d{2}(?!\w)(?:\s*(?:,|and|…|\.{2,3}|–)\s*(?:S\d{3}-)?[A-Z]\d{2}(?!\w))*|P3-MCP-\d{2}(?!\w)(?:\s*(?:…|\.{2,3}|–)\s*(?:P3-MCP-)?\d{2}(?!\w))?/g

const idsOfChain = (chain: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let last = { source: "", letter: "", number: 0 }
  for (const [, link = "", source, letter = "", number] of chain.matchAll(
    /(,|and|…|\.{2,3}|–|^)\s*(?:(S\d{3}|P3-MCP)-)?([A-Z]?)(\d{2})/g
  )) {
    const next = { source: source ?? last.source, letter, number: Number(number) }
    const goesOn =
      !["", ",", "and"].includes(link) && next.source === last.source && next.letter === last.letter
    for (let at = goesOn ? last.number + 1 : next.number; at <= next.number; at += 1)
      found.push(spell({ ...next, number: at }))
    last = next
  }
  return found
}

/** The titles of a test file's tests and groups, `each` and `layer` forms among them. */
export const titlesOf = (text: string): ReadonlyArray<string> =>
  [
    ...withoutComments(text).matchAll(
      /(?:\b(?:describe|it|test|layer)(?:\.\w+)*|\))\s*\(\s*(["'`])((?:\\[\s\S]|(?!\1)[^\\])*)\1/g
    )
  ].map((match) => match[2] ?? "")

/** The ids in the rows of the decisions that a document answers: their last cell does not say "a test". */
export const settledBy = (decisions: string): ReadonlyArray<string> =>
  decisions
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) =>
      line
        .split("|")
        .map((cell) => cell.trim())
        .filter((cell) => cell !== "")
    )
    .filter((cells) => !/^a test\b/i.test(cells.at(-1) ?? ""))
    .flatMap((cells) => idsIn(cells[1] ?? ""))

/** Weighs the checklist against tests, decisions and promises. */
export const judge = (from: {
  readonly checklist: string
  readonly decisions: string
  readonly later: string
  readonly tests: ReadonlyArray<SourceFile>
}): Verdict => {
  const known = idsOfChecklist(from.checklist)
  const isKnown = new Set(known)
  const named = from.tests.flatMap(({ path, text }) =>
    titlesOf(text).flatMap((title) => idsIn(title).map((id) => ({ id, where: path })))
  )
  const shown = new Set(named.filter(({ id, where }) => shows(where, id)).map(({ id }) => id))
  const waiting = from.later
    .split("\n")
    .filter((line) => line.startsWith("- "))
    .flatMap(idsIn)
  const settled = new Set(settledBy(from.decisions))
  const promised = new Set(waiting)
  const everyMention = [
    ...named,
    ...waiting.map((id) => ({ id, where: "specs/later.md" })),
    ...idsIn(from.decisions).map((id) => ({ id, where: "the decisions" }))
  ]
  return {
    forgotten: known.filter((id) => !shown.has(id) && !settled.has(id) && !promised.has(id)),
    alreadyShown: [...promised].filter((id) => shown.has(id) || settled.has(id)),
    listedTwice: waiting.filter((id, at) => waiting.indexOf(id) !== at),
    unknown: everyMention.filter(({ id }) => !isKnown.has(id)).map(({ id, where }) => `${id} in ${where}`)
  }
}

/**
 * Whether a test can show a line: a rule that nothing calls shows nothing to anybody.
 *
 * **Details** The lines of S004 describe a pure reducer, so the tests of `domain` show
 * them. For all others the rule must be met in the machine, on real rows or through a door.
 */
const shows = (test: string, id: string): boolean =>
  id.startsWith("S004-") || !test.startsWith("packages/domain/")

const spell = (id: { readonly source: string; readonly letter: string; readonly number: number }): string =>
  `${id.source}-${id.letter}${String(id.number).padStart(2, "0")}`
