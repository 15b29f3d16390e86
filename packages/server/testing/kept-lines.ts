/**
 * A logger that keeps the first part of what is logged, line by line.
 */
import { Logger } from "effect"

export const keptLines = () => {
  const said: Array<string> = []
  return {
    said,
    logger: Logger.make<unknown, void>(({ message }) => void said.push(String([message].flat()[0])))
  }
}
