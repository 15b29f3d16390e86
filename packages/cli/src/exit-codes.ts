/**
 * Every code that the command ends with, and what each means to whoever calls it.
 */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  waits: 3,
  interrupted: 130,
  terminated: 143
} as const

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes]

/** What each says, as `docs/cli.md` has it. */
export const exitCodeMeanings: Readonly<Record<ExitCode, string>> = {
  0: "It was done. So it is when the reader of what only prints has seen enough (`tail | head`), and when a server was stopped.",
  1: "It was not done, or something else is wrong: one sentence on standard error says what, and what to do.",
  2: "It was called wrongly, a setting that a flag of `start` needs is missing, or a person must confirm it first (`--yes`): nothing was changed.",
  3: "The agent rests and waits for a person: an answer to its question, or leave to go on.",
  130: "Ctrl-C (SIGINT) ended it.",
  143: "SIGTERM ended it."
}
