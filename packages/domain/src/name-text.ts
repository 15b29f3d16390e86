/**
 * Names that people give and others read: one line in which everything is seen.
 *
 * What hides in a name makes it look like another, or like a line of its own in
 * a log. Joiners stay, for emoji and scripts are written with them.
 */
import { Schema } from "effect"

/** Text of 1 to `maxChars` characters; `what` begins the sentence that refuses it: `A project's name`. */
export const NameText = (what: string, maxChars: number) => {
  const message = `${what} has 1 to ${maxChars} characters on one line, none of them invisible and not all of them blank`
  return Schema.String.check(
    Schema.isBetweenLength(1, maxChars, { message }),
    Schema.isPattern(seen, { message })
  )
}

/** Controls, what ends a line, lone surrogates, what turns the reading order, and what has no width but joins nothing. */
const seen =
  /^(?=[\s\S]*[^\s\u200c\u200d])[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]*$/u
