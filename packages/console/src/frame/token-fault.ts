/**
 * Why a text can be no token, before it is sent: no request could carry it.
 *
 * Pure. Whether a token is known, the server alone says.
 */
import { limits } from "../limits.ts"

export const tokenFault = (text: string): string | undefined => {
  if (text.length > limits.maxTokenCharacters)
    return `Not a token: it has ${text.length.toLocaleString("en")} characters.`
  // What a header may carry without quotes: printable ASCII, no spaces.
  return /^[\x21-\x7e]*$/.test(text)
    ? undefined
    : "Not a token: only unaccented Latin letters, digits and symbols are allowed, without spaces."
}
