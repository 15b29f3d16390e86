/**
 * Help as text: what a command is for, how it is called, what it takes, and examples at the end.
 *
 * Every command below it has one line. What holds for every command stands with
 * the program alone, and elsewhere in one line that says so.
 */
import { Option } from "effect"
import type { HelpDoc } from "effect/cli"
import type { Paint } from "./terminal/paint.ts"
import { displayWidth, pad } from "./terminal/text.ts"

/** Wider lines are broken; a line of a list of commands is short enough by itself. */
export const helpColumns = 80

export const renderHelp = (doc: HelpDoc.HelpDoc, paint: Paint): string => {
  const path = doc.commandPath ?? []
  const isProgram = path.length <= 1
  const flags = doc.flags.map(flagRow)
  const shared = (doc.globalFlags ?? []).flatMap((flag) => builtIn[flag.name] ?? [flagRow(flag)])
  const groups = (doc.subcommands ?? []).map(({ commands, group }): Section => ({
    title: group ?? "Commands",
    rows: commands.map(({ description, name, shortDescription }) => [name, shortDescription ?? description])
  }))
  const sections: ReadonlyArray<Section> = [
    { title: "Arguments", rows: (doc.args ?? []).map(argumentRow) },
    ...groups,
    { title: "Flags", rows: flags },
    ...(isProgram ? [{ title: "Flags of every command", rows: shared }] : [])
  ]
  const column = columnOf(groups.flatMap(({ rows }) => rows))
  const examples = doc.examples ?? []
  return [
    ...doc.description.split("\n").flatMap((line) => wrapped(line, "")),
    "",
    `${paint.bold("Usage:")} ${doc.usage}`,
    ...sections
      .filter(({ rows }) => rows.length > 0)
      .flatMap(({ rows, title }) => [
        "",
        paint.bold(`${title}:`),
        ...rowLines(rows, groups.some((group) => group.title === title) ? column : columnOf(rows), paint)
      ]),
    ...(examples.length === 0 ? [] : ["", paint.bold("Examples:"), ...exampleLines(examples, paint)]),
    "",
    paint.dim(
      isProgram
        ? `"tropism COMMAND --help" shows the details of each.`
        : `Every command also takes --json, --quiet, --project, --url and --token: see "${path[0]} --help".`
    )
  ].join("\n")
}

/** What the library says of its own flags is longer than a line, or of no use here. */
const builtIn: Readonly<Record<string, ReadonlyArray<Row>>> = {
  help: [["-h, --help", "Show help"]],
  version: [["-v, --version", "Show the version"]],
  wizard: [],
  completions: [["--completions <shell>", "Print completions for bash, zsh or fish"]],
  "log-level": [["--log-level <level>", "Server log level: debug, info, warn, error or none"]]
}

type Row = readonly [left: string, right: string]

interface Section {
  readonly title: string
  readonly rows: ReadonlyArray<Row>
}

const flagRow = ({ aliases, description, name, type }: HelpDoc.FlagDoc): Row => {
  const value = type === "boolean" ? "" : ` ${type.includes("|") ? `<${name}>` : type}`
  return [
    [...aliases, `--${name}`].join(", ") + value,
    Option.getOrElse(description, () => "").replace(/ \(choices: /, " (")
  ]
}

const argumentRow = ({ description, name, required, variadic }: HelpDoc.ArgDoc): Row => [
  `${name}${variadic ? "…" : ""}`,
  `${Option.getOrElse(description, () => "")}${required ? "" : " (optional)"}`
]

const longestLeft = 26

const columnOf = (rows: ReadonlyArray<Row>): number =>
  Math.min(longestLeft, Math.max(0, ...rows.map(([left]) => displayWidth(left)))) + 4

const rowLines = (rows: ReadonlyArray<Row>, column: number, paint: Paint): ReadonlyArray<string> =>
  rows.flatMap(([left, right]) => {
    const [first = "", ...more] = wrapped(right, " ".repeat(column))
    const name = paint.link(left)
    return displayWidth(left) + 4 > column
      ? [`  ${name}`, first, ...more]
      : [`  ${name}${pad("", column - 2 - displayWidth(left))}${first.trimStart()}`, ...more]
  })

/** The description beside its example where both fit into a line, else above it. */
const exampleLines = (
  examples: NonNullable<HelpDoc.HelpDoc["examples"]>,
  paint: Paint
): ReadonlyArray<string> => {
  const column = columnOfExamples(examples.map(({ command }) => displayWidth(command)))
  const fits = ({ command, description = "" }: HelpDoc.ExampleDoc) =>
    displayWidth(command) < column && column + 4 + displayWidth(description) <= helpColumns
  if (examples.every(fits))
    return examples.map(({ command, description = "" }) =>
      `  ${paint.link(command)}${pad("", column - displayWidth(command))}  ${paint.dim(description)}`.trimEnd()
    )
  return examples.flatMap(({ command, description = "" }) => [
    ...wrapped(description, "  # ").map(paint.dim),
    `  ${paint.link(command)}`
  ])
}

const columnOfExamples = (widths: ReadonlyArray<number>): number => Math.max(...widths) + 1

/** A text in lines of the help's width; a list that has breaks of its own keeps them. */
const wrapped = (text: string, indent: string): ReadonlyArray<string> => {
  if (displayWidth(indent + text) <= helpColumns) return [`${indent}${text}`]
  const lines: Array<string> = []
  let line = indent
  for (const word of text.split(" ")) {
    const next = line === indent ? `${indent}${word}` : `${line} ${word}`
    if (displayWidth(next) > helpColumns && line !== indent) {
      lines.push(line)
      line = `${indent}${word}`
    } else line = next
  }
  return [...lines, line]
}
