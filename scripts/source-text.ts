/**
 * Looks at the text of a source file without a parser: its code, imports, exports and header.
 *
 * `withoutComments` and `codeOnly` keep every line where it was, so that a
 * place found in what they answer is the place in the file. The scanner knows
 * strings, templates, regular expressions and comments. It judges nothing: the
 * rules stand in `tidy-rules.ts` and `staircase.ts`.
 */

/** One file of the project, its path relative to the root with forward slashes. */
export interface SourceFile {
  readonly path: string
  readonly text: string
}

/** One place that breaks a rule. */
export interface Complaint {
  readonly path: string
  readonly line: number
  readonly message: string
}

/** A name that a file imports from, and where it says so. */
export interface Import {
  readonly specifier: string
  readonly line: number
}

type Kind = "code" | "comment" | "text"

interface Piece {
  readonly kind: Kind
  readonly start: number
  readonly end: number
}

/** The file with its comments blanked; strings stay. */
export const withoutComments = (text: string): string => render(text, (kind) => kind !== "comment")

/** The file with its comments and the contents of its strings blanked. */
export const codeOnly = (text: string): string => render(text, (kind) => kind === "code")

/** The comments of the file, all else blanked. */
export const commentsOnly = (text: string): string => render(text, (kind) => kind === "comment")

/** Everything a file imports from: static, type-only, dynamic and re-exported. */
export const importsOf = (text: string): ReadonlyArray<Import> => {
  const code = withoutComments(text)
  const bare = codeOnly(text)
  const found: Array<Import> = []
  for (const match of code.matchAll(/\b(?:from\s*|import\s*\(?\s*)(["'`])([^"'`\n]+)\1/g)) {
    // The word must be code itself: a sentence in a string may say "import" too.
    if (bare[match.index] !== code[match.index]) continue
    found.push({ specifier: match[2] ?? "", line: lineAt(text, match.index) })
  }
  return found
}

/** The names a file exports, each with its line. */
export const exportsOf = (text: string): ReadonlyArray<{ readonly name: string; readonly line: number }> => {
  const code = codeOnly(text)
  const declared = code.matchAll(
    /\bexport\s+(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|class|function\*?|interface|type|enum)\s+([A-Za-z_$][\w$]*)/g
  )
  const found = [...declared].map((match) => ({ name: match[1] ?? "", line: lineAt(text, match.index) }))
  for (const match of code.matchAll(/\bexport\s+(?:type\s+)?\{([^}]*)\}/g)) {
    for (const item of (match[1] ?? "").split(",")) {
      const name = item
        .trim()
        .split(/\s+as\s+|^type\s+/)
        .at(-1)
        ?.trim()
      if (name) found.push({ name, line: lineAt(text, match.index) })
    }
  }
  return found
}

/** The text of the comment that opens the file, or nothing when it opens otherwise. */
export const headerOf = (path: string, text: string): string | undefined => {
  const body = text.replace(/^#!.*\n/, "")
  if (/\.(ts|tsx|mts|js|mjs)$/.test(path)) return plain(/^\/\*\*([\s\S]*?)\*\//.exec(body)?.[1])
  if (path.endsWith(".css")) return plain(/^\/\*([\s\S]*?)\*\//.exec(body)?.[1])
  if (path.endsWith(".sql")) return plain(/^((?:--.*\n)+)/.exec(body)?.[1])
  return plain(/^((?:#.*\n)+)/.exec(body)?.[1])
}

/** The number of the line, from 1, that holds this position. */
export const lineAt = (text: string, position: number): number => {
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < position; at = text.indexOf("\n", at + 1)) line += 1
  return line
}

/** Complains about each place in `searched` (blanked text of the file) that a pattern finds. */
export const complainWhere = (
  file: SourceFile,
  searched: string,
  pattern: RegExp,
  message: string | ((found: string) => string)
): ReadonlyArray<Complaint> =>
  [...searched.matchAll(pattern)].map((match) => ({
    path: file.path,
    line: lineAt(file.text, match.index),
    message: typeof message === "string" ? message : message(match[0])
  }))

const plain = (comment: string | undefined): string | undefined =>
  comment
    ?.split("\n")
    .map((line) => line.replace(/^\s*(?:\*|--|#)?\s?/, ""))
    .join("\n")
    .trim()

const render = (text: string, keeps: (kind: Kind) => boolean): string =>
  scan(text)
    .map((piece) => {
      const part = text.slice(piece.start, piece.end)
      return keeps(piece.kind) ? part : part.replaceAll(/[^\n]/g, " ")
    })
    .join("")

/** Cuts a file into code, comments and the insides of strings. */
const scan = (text: string): ReadonlyArray<Piece> => {
  const pieces: Array<Piece> = []
  /** For each template literal that is open: how many braces its `${` has seen. */
  const templates: Array<number> = []
  let codeStart = 0
  let at = 0
  const take = (kind: Kind, start: number, end: number): void => {
    if (start > codeStart) pieces.push({ kind: "code", start: codeStart, end: start })
    pieces.push({ kind, start, end })
    codeStart = end
    at = end
  }
  const takeTemplate = (start: number): void => {
    const end = endOfTemplatePart(text, start)
    take("text", start, end)
    if (text.startsWith("${", end)) {
      templates.push(0)
      at = end + 2
    } else at = end + 1
  }
  while (at < text.length) {
    const char = text[at]
    if (text.startsWith("//", at)) take("comment", at, endOf(text, "\n", at, 0))
    else if (text.startsWith("/*", at)) take("comment", at, endOf(text, "*/", at, 2))
    else if (char === '"' || char === "'") {
      take("text", at + 1, endOfQuoted(text, at + 1, char))
      at += 1
    } else if (char === "`") takeTemplate(at + 1)
    else if (char === "/" && opensRegExp(text, at)) take("text", at, endOfRegExp(text, at))
    else if (templates.length > 0 && (char === "{" || char === "}")) {
      const depth = (templates.pop() ?? 0) + (char === "{" ? 1 : -1)
      if (depth >= 0) templates.push(depth)
      if (depth < 0) takeTemplate(at + 1)
      else at += 1
    } else at += 1
  }
  pieces.push({ kind: "code", start: codeStart, end: text.length })
  return pieces
}

const endOf = (text: string, mark: string, from: number, extra: number): number => {
  const end = text.indexOf(mark, from + extra)
  return end === -1 ? text.length : end + extra
}

/** Where a quoted string ends; a newline ends it too, so that an apostrophe in JSX spoils one line at most. */
const endOfQuoted = (text: string, from: number, quote: string): number => {
  let at = from
  while (at < text.length && text[at] !== quote && text[at] !== "\n") at += text[at] === "\\" ? 2 : 1
  return Math.min(at, text.length)
}

/** Where the text of a template stops: at its closing backtick or at the next `${`. */
const endOfTemplatePart = (text: string, from: number): number => {
  let at = from
  while (at < text.length && text[at] !== "`" && !text.startsWith("${", at)) at += text[at] === "\\" ? 2 : 1
  return Math.min(at, text.length)
}

/** Whether a slash begins a regular expression: it does where no value has just ended. */
const opensRegExp = (text: string, at: number): boolean => {
  const before = text.slice(Math.max(0, at - 40), at).trimEnd()
  return (
    before === "" || /(?:[=(,:;!&|?{}[+\-*%~^]|=>|\b(?:return|typeof|case|in|of|yield|do|else))$/.test(before)
  )
}

const endOfRegExp = (text: string, from: number): number => {
  let inClass = false
  for (let at = from + 1; at < text.length && text[at] !== "\n"; at += 1) {
    if (text[at] === "\\") at += 1
    else if (text[at] === "[") inClass = true
    else if (text[at] === "]") inClass = false
    else if (text[at] === "/" && !inClass) return at + 1
  }
  return from + 1
}
