/**
 * The options of programs that developers start: what cannot be meant is refused before anything begins.
 *
 * A program that counts what it has found must not count nothing and be content.
 * So a number that is none, an option that nobody knows and a name that means
 * nothing are told in a sentence, with how the program is used, and end it with 2.
 */
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
      return parseArgs({ options: { ...options, help: { type: "boolean" } }, allowPositionals })
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

/** A whole number from a bound on. */
export const readNumber = (name: string, text: string, least: number): number =>
  /^\d{1,15}$/.test(text) && Number(text) >= least
    ? Number(text)
    : refuse(`--${name} takes a whole number from ${least} on, and not ${text}`)
