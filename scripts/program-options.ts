/**
 * The options of programs that developers start: what cannot be meant is refused before anything begins.
 *
 * A program that counts what it has found must not count nothing and be content.
 * So a number that is none, an option that nobody knows and a name that means
 * nothing are told in a sentence, with how the program is used, and end it with 2.
 */
import { appendFileSync } from "node:fs"
import { parseArgs, type ParseArgsConfig } from "node:util"

/** Says why the program cannot begin, and ends it. */
export const refuse = (sentence: string): never => {
  console.error(sentence)
  process.exit(2)
}

/** Reads the options of the command line; `--help` prints how the program is used. */
export const readOptions = <const T extends NonNullable<ParseArgsConfig["options"]>>(
  usage: string,
  options: T,
  allowPositionals = false
) => {
  const read = () => {
    try {
      return parseArgs({
        args: withNegatives(process.argv.slice(2), options),
        options: { ...options, help: { type: "boolean" } },
        allowPositionals
      })
    } catch (fault) {
      return refuse(`${fault instanceof Error ? fault.message : String(fault)}\n\n${usage}`)
    }
  }
  const found = read()
  if ((found.values as { readonly help?: boolean }).help === true) {
    console.log(usage)
    process.exit(0)
  }
  return found as ReturnType<typeof parseArgs<{ options: T; allowPositionals: true }>>
}

/** Ties a number below zero to its option: by itself it would be taken for an option, and nobody would say its bound. */
const withNegatives = (
  args: ReadonlyArray<string>,
  options: NonNullable<ParseArgsConfig["options"]>
): Array<string> => {
  const tied: Array<string> = []
  for (const arg of args) {
    const before = tied.at(-1) ?? ""
    const takesText = before.startsWith("--") && options[before.slice(2)]?.type === "string"
    if (takesText && /^-\d/.test(arg)) tied.splice(-1, 1, `${before}=${arg}`)
    else tied.push(arg)
  }
  return tied
}

/** A whole number from a bound on. */
export const readNumber = (name: string, text: string, least: number): number =>
  /^\d{1,15}$/.test(text) && Number(text) >= least
    ? Number(text)
    : refuse(`--${name} takes a whole number from ${least} on, and not ${text}`)

/** A file that lines are added to at the end; it is there from now on. */
export const readKeptFile = (name: string, path: string): string => {
  try {
    appendFileSync(path, "")
    return path
  } catch (fault) {
    const why = fault instanceof Error ? fault.message.replace(/^\w+: |, .*$/g, "") : String(fault)
    return refuse(`--${name} takes a file that can be written, and not ${path}: ${why}`)
  }
}
