/**
 * One change of a source text.
 */

/** A text of a file, that stands there once, and what stands there instead. */
export interface Edit {
  /** From the checkout. */
  readonly file: string
  readonly from: string
  readonly to: string
}

/** The source with the change; a text that is not there, or twice, is no change that can be meant. */
export const mutated = (source: string, { file, from, to }: Edit): string => {
  const parts = source.split(from)
  if (parts.length !== 2)
    throw new Error(`${file} has ${parts.length - 1} times what is to be changed: ${from}`)
  return parts.join(to)
}
