/** Finds the option of a question that a person's answer means. */

/**
 * The option that an answer means: the same text, else the only one that differs in case, a list mark, quotes or final punctuation,
 * else the one at the place that a number names. Undefined when none or several fit.
 *
 * A number is a place only if no option is a number itself.
 */
export const chosenOption = (options: ReadonlyArray<string>, answer: string): string | undefined => {
  if (options.includes(answer)) return answer
  const wanted = bare(answer)
  const alike = options.filter((option) => bare(option) === wanted)
  if (alike.length > 0) return alike.length === 1 ? alike[0] : undefined
  const place = /^#?(\d{1,3})$/.exec(wanted)?.[1]
  return place === undefined || options.some((option) => /^\d+$/.test(bare(option)))
    ? undefined
    : options[Number(place) - 1]
}

const bare = (text: string): string =>
  text
    .trim()
    .replace(/^(?:[-*•]|\(?\d{1,3}[.)])\s+/, "")
    .replace(/^["'“‘`](.*)["'”’`]$/, "$1")
    .replace(/[\s.!,;:]+$/, "")
    .toLowerCase()
