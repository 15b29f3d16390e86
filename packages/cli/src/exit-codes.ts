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
  0: "Success. Also when the reader of the output closes it early (`tail | head`), and when a server was stopped.",
  1: "Failure. One sentence on standard error names the failure and the fix.",
  2: "Usage error, a missing setting that a flag of `start` needs, or a missing confirmation (`--yes`). Nothing was changed.",
  3: "The agent is paused and needs a person: an answer to its question, or a resume.",
  130: "Interrupted by Ctrl-C (SIGINT).",
  143: "Terminated by SIGTERM."
}
