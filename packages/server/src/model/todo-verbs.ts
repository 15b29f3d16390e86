/**
 * Forms of the verbs that TodoAssistant's script knows: "adding" as "add", and "delet" as "delete".
 */

const verbs =
  "add create put note write jot stick make insert include save record delete remove erase drop scrap cancel clear cross tick check mark complete finish rename change update edit modify set show list display take get give strike throw move remind close view".split(
    " "
  )

const gerundOf = (verb: string): string => {
  if (verb.endsWith("e")) return `${verb.slice(0, -1)}ing`
  return /^[^aeiou]*[aeiou][pt]$/.test(verb) ? `${verb}${verb.at(-1)}ing` : `${verb}ing`
}

const bases = new Map(verbs.map((verb) => [gerundOf(verb), verb]))

const firstWord = /^\p{L}+(?=\s|:|$)/u

/** "adding milk" as "add milk". */
export const imperative = (text: string): string =>
  text.replace(firstWord, (word) => bases.get(word.toLowerCase()) ?? word)

/** Verbs of which a slip is known when one sees it; shorter ones are too near to other words. */
const long = verbs.filter((verb) => verb.length >= 5 || verb === "add")

/** With its first word as it was meant: a letter that is missing, doubled or swapped makes no other word. */
export const spelled = (text: string): string =>
  text.replace(firstWord, (word) => {
    const said = word.toLowerCase()
    if (verbs.includes(said)) return word
    const meant = long.filter((verb) => isSlip(said, verb))
    return meant.length === 1 ? (meant[0] ?? word) : word
  })

const known =
  "already finished finish completed complete finally delete deleted remove removed pending description rename renamed tasks open".split(
    " "
  )

/** A text in which the words that a request is known by are spelled as they were meant. */
export const wellSpelled = (text: string): string =>
  text.replace(/\p{L}{5,}/gu, (word) => {
    const said = word.toLowerCase()
    return known.includes(said) ? word : (known.find((each) => each.length > 5 && isSlip(said, each)) ?? word)
  })

const isSlip = (said: string, verb: string): boolean => {
  if (said[0] !== verb[0]) return false
  if (said.length + 1 === verb.length) return holds(verb, said)
  if (said.length === verb.length + 1) return holds(said, verb) && isDoubled(said)
  if (said.length !== verb.length) return false
  const at = [...said].findIndex((letter, index) => letter !== verb[index])
  return said[at] === verb[at + 1] && said[at + 1] === verb[at] && said.slice(at + 2) === verb.slice(at + 2)
}

/** Whether one letter less of the longer is the shorter. */
const holds = (longer: string, shorter: string): boolean =>
  [...longer].some((_, index) => longer.slice(0, index) + longer.slice(index + 1) === shorter)

const isDoubled = (word: string): boolean => /(.)\1/.test(word)
