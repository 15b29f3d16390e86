/**
 * A logger that keeps what is logged, line by line: the first part, and the code for programs where there is one.
 */
import { Logger, Schema } from "effect"

/** The code of a line of the log; undefined where it has none. */
export const codeIn = (message: unknown): string | undefined =>
  [message].flat().find((part): part is { readonly code: string } => isCoded(part))?.code

const isCoded = Schema.is(Schema.Struct({ code: Schema.String }))

export const keptLines = () => {
  const said: Array<string> = []
  const codes: Array<string | undefined> = []
  return {
    said,
    codes,
    logger: Logger.make<unknown, void>(({ message }) => {
      said.push(String([message].flat()[0]))
      codes.push(codeIn(message))
    })
  }
}
