/**
 * The sentences that people read, taken from the source: one list per surface, and the tests that repeat one.
 *
 * A sentence is a string, a template or a text in JSX with at least four words. `sentences.test.ts` compares the
 * lists with `sentences/*.txt`, so a change of wording is reviewed as text; a test that repeats a sentence would turn
 * red for its wording alone and is a finding.
 */
import { parseAst } from "vite"
import { type Complaint, lineAt, type SourceFile } from "./source-text.ts"

/** Where the sentences of each surface are written. */
export const surfaces = {
  openapi: /^packages\/api\/src\//,
  server: /^packages\/(?:server|domain|client)\/src\/(?!database\/migrations\/)/,
  cli: /^packages\/cli\/src\//,
  console: /^packages\/console\/src\//
} as const

/** The fewest words of a sentence. */
const leastWords = 4

/** The fewest words in a row that a test may not share with a sentence; four of them meet by chance. */
const leastRepeated = 5

/** Stands for a value in a sentence. */
const hole = "{…}"

interface Node {
  readonly type: string
  readonly start: number
  readonly [member: string]: unknown
}

interface Text {
  readonly text: string
  readonly start: number
}

export const isTest = (path: string): boolean => /\.(?:test|soak)\.tsx?$/.test(path)

const isProduct = ({ path }: SourceFile): boolean =>
  /\.tsx?$/.test(path) && !isTest(path) && !path.endsWith(".gen.ts")

/** All texts of a file of a surface, also those that are too short for a sentence; a name in code is none. */
export const textsOf = (file: SourceFile, surface: RegExp): ReadonlyArray<string> =>
  surface.test(file.path) && isProduct(file)
    ? textsIn(file)
        .map(({ text }) => text)
        .filter((text) => !/^[a-z][\w.:/-]*$/.test(text))
    : []

/** The sentences of a surface as text: each file's after its path, in the order of the source. */
export const sentencesOf = (files: ReadonlyArray<SourceFile>, surface: RegExp): string =>
  files
    .filter((file) => surface.test(file.path) && isProduct(file))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
    .flatMap((file) => {
      const sentences = textsIn(file)
        .map(({ text }) => text)
        .filter(isSentence)
      return sentences.length === 0
        ? []
        : [`${file.path}\n${sentences.map((text) => `  ${text}\n`).join("")}`]
    })
    .join("\n")

/** Each place where a test repeats five words in a row of a sentence, whichever of the two texts is longer. */
export const repeatedSentences = (files: ReadonlyArray<SourceFile>): ReadonlyArray<Complaint> => {
  const windows = new Set(
    Object.values(surfaces)
      .flatMap((surface) => files.filter((file) => surface.test(file.path) && isProduct(file)))
      .flatMap((file) => textsIn(file).filter(({ text }) => isSentence(text)))
      .flatMap(({ text }) => windowsOf(text))
  )
  return files
    .filter(({ path }) => isTest(path) && path.startsWith("packages/"))
    .flatMap((file) =>
      textsIn(file).flatMap(({ start, text }) => {
        const repeated = windowsOf(text).find((window) => windows.has(window))
        return repeated === undefined
          ? []
          : [
              {
                path: file.path,
                line: lineAt(file.text, start),
                message: `repeats a sentence: "${repeated}"`
              }
            ]
      })
    )
}

/** Commands, examples to type and messages of other programs are facts, not our wording. */
const fact =
  /“[^”]*”|no space left on device|(?:npx )?\btropism(?: [a-z][a-z-]*| [A-Z]+)+|git pull && npm ci/gi

/** Each run of five words of a text with no value, number or code name between them. */
const windowsOf = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(fact, hole)
    .split(hole)
    .flatMap((part) => {
      const words = part.split(" ").filter((word) => word !== "")
      return words.flatMap((_, index) => {
        const window = words.slice(index, index + leastRepeated)
        return window.length === leastRepeated && window.every(isWord)
          ? [window.map((word) => word.replaceAll(/[^A-Za-z'’-]/g, "").toLowerCase()).join(" ")]
          : []
      })
    })

const isWord = (word: string): boolean => /^["'“(]*[A-Za-z][A-Za-z'’-]*[.,:;!?)"'”…]*$/.test(word)

const wordsIn = (text: string): number => text.split(" ").filter(isWord).length

const isSentence = (text: string): boolean =>
  wordsIn(text.replaceAll(hole, " ")) >= leastWords &&
  !/^(?:select|insert|update|delete|with|alter|create|grant|lock|notify|set|from|where|and|or|left|join|order|for|case|on) /.test(
    text
  )

const known = new WeakMap<SourceFile, ReadonlyArray<Text>>()

/** All texts of a file but those that name modules, tests or styles. */
const textsIn = (file: SourceFile): ReadonlyArray<Text> => {
  const before = known.get(file)
  if (before !== undefined) return before
  const found = readTexts(file)
  known.set(file, found)
  return found
}

const readTexts = (file: SourceFile): ReadonlyArray<Text> => {
  const found: Array<Text> = []
  const add = (text: string, start: number) =>
    found.push({ text: text.replaceAll(/\s+/g, " ").trim(), start })
  /** `isPart`: the text of this node stands in the text around it already. */
  const visit = (value: unknown, isPart = false): void => {
    if (Array.isArray(value))
      return value.forEach((one) => visit(one, isPart && isNode(one) && isInline(one)))
    if (!isNode(value) || skips(value)) return
    const text = textOf(value)
    if (text !== undefined && !isPart) add(text, value.start)
    if (text !== undefined && value.type === "Literal") return
    for (const [member, inside] of Object.entries(value)) {
      if (titles(value, member)) visit((inside as ReadonlyArray<unknown>).slice(1))
      else visit(inside, text !== undefined && ["children", "left", "right"].includes(member))
    }
  }
  visit(parseAst(file.text, { lang: file.path.endsWith("x") ? "tsx" : "ts" }) as unknown)
  return found
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string"

const skips = (node: Node): boolean =>
  /^(?:Import|ExportAll|TS.*Type$|TSTypeAnnotation|TSInterface)/.test(node.type) ||
  (node.type === "JSXAttribute" &&
    ["className", "class", "d"].includes((node["name"] as Node)["name"] as string)) ||
  (node.type === "TaggedTemplateExpression" &&
    /^(?:sql|css)\b/.test(((node["tag"] as Node)["name"] as string) ?? ""))

/** Whether these are the arguments of a test or a group of tests, of which the first is its title. */
const titles = (node: Node, member: string): boolean => {
  const [first] = member === "arguments" ? (node[member] as ReadonlyArray<unknown>) : []
  return (
    node.type === "CallExpression" &&
    /^(?:describe|it|live|test|here|layer)$/.test(rootName(node["callee"])) &&
    isNode(first) &&
    textOf(first) !== undefined
  )
}

const rootName = (callee: unknown): string => {
  if (!isNode(callee)) return ""
  if (callee.type === "Identifier") return callee["name"] as string
  return rootName(callee["object"] ?? callee["callee"] ?? callee["tag"])
}

const inline = new Set(["a", "b", "code", "em", "i", "kbd", "q", "small", "span", "strong", "Link"])

/** The text that a node is: a string, a template, strings put together, an element's own words. */
const textOf = (node: Node): string | undefined => {
  if (node.type === "Literal") {
    const { regex, value } = node as { regex?: { pattern: string }; value?: unknown }
    if (regex !== undefined) return plainPattern(regex.pattern)
    return typeof value === "string" ? value : undefined
  }
  if (node.type === "TemplateLiteral")
    return (node["quasis"] as ReadonlyArray<{ value: { cooked: string } }>)
      .map(({ value }) => value.cooked)
      .join(hole)
  if (node.type === "BinaryExpression" && node["operator"] === "+") {
    const sides = [node["left"], node["right"]].map((side) => (isNode(side) ? textOf(side) : undefined))
    return sides.every((side) => side === undefined) ? undefined : sides.map((side) => side ?? hole).join("")
  }
  if (node.type === "JSXElement" || node.type === "JSXFragment") {
    const words = childrenText(node)
    return /[a-z]/i.test(words.replaceAll(hole, "")) ? words : undefined
  }
  return undefined
}

/** Whether an element's words stand in those of the element around it. */
const isInline = (node: Node): boolean =>
  node.type === "JSXElement" &&
  inline.has((node["openingElement"] as { name: { name?: string } }).name.name ?? "")

const childrenText = (node: Node): string =>
  (node["children"] as ReadonlyArray<Node>)
    .map((child) => {
      if (child.type === "JSXText") return child["value"] as string
      if (child.type === "JSXExpressionContainer") {
        const inside = child["expression"] as Node
        return inside.type === "Literal" ? (textOf(inside) ?? hole) : hole
      }
      return isInline(child) ? childrenText(child) : hole
    })
    .join("")

/** What a regular expression matches to the letter; all else is a hole. */
const plainPattern = (pattern: string): string =>
  pattern
    .replaceAll(/\\([.?*+()[\]{}|/^$-])/g, "\uE000$1")
    .replaceAll(/(?<!\uE000)(?:\\.|\[[^\]]*\]|[.()|^$?*+{}])+/g, hole)
    .replaceAll("\uE000", "")
